//! Handles in memory: 4 bytes each in MPICH's ABI, 8 bytes in the others.

use std::ffi::c_void;

use crate::functions::Handle;

/// An array of handles, with the stride of the library's own arrays.
pub(crate) enum HandleArray {
    /// MPICH's, of 4 bytes.
    Narrow(Vec<u32>),
    /// Pointers.
    Wide(Vec<usize>),
}

impl HandleArray {
    /// Makes `count` handles of `value`, with `bytes` bytes each (`Numbers::handle_bytes`).
    pub(crate) fn new(bytes: i32, count: usize, value: Handle) -> Self {
        if bytes == 4 { Self::Narrow(vec![value as u32; count]) } else { Self::Wide(vec![value; count]) }
    }

    /// The handle at `index`, as it is passed by value.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Handle {
        match self {
            Self::Narrow(handles) => handles[index] as Handle,
            Self::Wide(handles) => handles[index],
        }
    }

    /// Stores a handle at `index`.
    pub(crate) fn set(&mut self, index: usize, value: Handle) {
        match self {
            Self::Narrow(handles) => handles[index] = value as u32,
            Self::Wide(handles) => handles[index] = value,
        }
    }

    /// The address of the handle at `index`.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> *mut c_void {
        match self {
            Self::Narrow(handles) => (&raw mut handles[index]).cast(),
            Self::Wide(handles) => (&raw mut handles[index]).cast(),
        }
    }

    /// The address of the handles of `range`, for functions that take an array.
    #[inline]
    pub(crate) fn range(&mut self, range: std::ops::Range<usize>) -> *mut c_void {
        match self {
            Self::Narrow(handles) => handles[range].as_mut_ptr().cast(),
            Self::Wide(handles) => handles[range].as_mut_ptr().cast(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_have_the_stride_of_the_abi() {
        for (bytes, value) in [(4, 0xac00_0000), (8, 0x7fff_1234_5678)] {
            let mut handles = HandleArray::new(bytes, 3, value);
            assert_eq!(handles.at(2) as usize - handles.at(0) as usize, 2 * bytes as usize);
            assert_eq!(handles.range(1..3), handles.at(1));
            assert_eq!([0, 1, 2].map(|index| handles.get(index)), [value; 3]);
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_range_beyond_the_end_is_refused() {
        HandleArray::new(4, 3, 0).range(2..4);
    }
}
