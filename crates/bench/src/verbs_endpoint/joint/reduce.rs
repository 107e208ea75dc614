//! The reduction of two vectors.

use std::ops::Add;

use crate::endpoint::collectives::{Element, Reduction};

/// Reduces a vector into another of the same elements.
#[inline]
pub(crate) fn reduce((element, by): (Element, Reduction), into: &mut [u8], with: &[u8]) {
    match element {
        Element::Double => numbers(by, into, with, f64::from_ne_bytes, f64::to_ne_bytes),
        Element::Float => numbers(by, into, with, f32::from_ne_bytes, f32::to_ne_bytes),
        Element::Int32 => numbers(by, into, with, i32::from_ne_bytes, i32::to_ne_bytes),
        Element::Uint64 => numbers(by, into, with, u64::from_ne_bytes, u64::to_ne_bytes),
    }
}

fn numbers<const N: usize, T: Add<Output = T> + Copy + PartialOrd>(
    by: Reduction,
    into: &mut [u8],
    with: &[u8],
    read: impl Fn([u8; N]) -> T,
    write: impl Fn(T) -> [u8; N],
) {
    match by {
        Reduction::Max => each(into, with, |a, b| write(larger(read(a), read(b)))),
        Reduction::Min => each(into, with, |a, b| write(less(read(a), read(b)))),
        Reduction::Sum => each(into, with, |a, b| write(read(a) + read(b))),
    }
}

fn each<const N: usize>(into: &mut [u8], with: &[u8], of: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (into, _) = into.as_chunks_mut::<N>();
    let (with, _) = with.as_chunks::<N>();
    for (into, with) in into.iter_mut().zip(with) {
        *into = of(*into, *with);
    }
}

fn larger<T: PartialOrd>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

fn less<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::choice::Choice;

    #[test]
    fn every_element_is_reduced_in_every_way() {
        for element in Element::VALUES {
            for (by, expected) in
                [(Reduction::Sum, [5, 5]), (Reduction::Min, [2, 1]), (Reduction::Max, [3, 4])]
            {
                let encode = |values: [u32; 2]| values.map(|value| element.encode(value)).concat();
                let mut into = encode([2, 4]);
                reduce((*element, by), &mut into, &encode([3, 1]));
                assert_eq!(into, encode(expected), "{} {}", element.word(), by.word());
            }
        }
    }
}
