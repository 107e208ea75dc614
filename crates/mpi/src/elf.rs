//! Reads from a shared library's file, without loading the library, whether it has a symbol and the
//! text of a symbol.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The most bytes that are read of a table of symbols or of names: MPICH's have 0.3 MB.
const TABLE_BYTES: u64 = 16 << 20;
/// The most sections of a file.
const SECTIONS: usize = 256;
/// Bytes of a symbol (`Elf64_Sym`).
const SYMBOL_BYTES: usize = 24;
/// Bytes of a section header (`Elf64_Shdr`).
const SECTION_BYTES: usize = 64;
/// `SHT_DYNSYM`.
const DYNSYM: u32 = 11;

/// The dynamic symbols of a 64-bit little-endian ELF file (System V ABI, chapter 4).
pub(crate) struct Symbols {
    file: File,
    symbols: Vec<u8>,
    names: Vec<u8>,
    sections: Vec<Section>,
}

/// The members of a section header that are used here.
struct Section {
    kind: u32,
    address: u64,
    offset: u64,
    bytes: u64,
    link: u32,
}

impl Symbols {
    /// Reads the symbols of a file; `None` if it is no 64-bit little-endian ELF file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let header = read(&file, 0, 64)?;
        // 64-bit (2), little-endian (1).
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let offset = u64_at(&header, 0x28)?;
        let count = usize::from(u16::from_le_bytes(header.get(0x3c..0x3e)?.try_into().ok()?));
        let table = read(&file, offset, (count.min(SECTIONS) * SECTION_BYTES) as u64)?;
        let sections: Vec<_> = table.chunks_exact(SECTION_BYTES).map(section).collect::<Option<_>>()?;
        let dynsym = sections.iter().find(|section| section.kind == DYNSYM)?;
        let dynstr = sections.get(dynsym.link as usize)?;
        let symbols = read(&file, dynsym.offset, dynsym.bytes)?;
        let names = read(&file, dynstr.offset, dynstr.bytes)?;
        Some(Self { file, symbols, names, sections })
    }

    /// Whether the file defines a symbol of that name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the text of a symbol that is a constant array of characters.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let symbol = self.find(name)?;
        let address = u64_at(symbol, 8)?;
        let bytes = u64_at(symbol, 16)?;
        let inside = |section: &Section| {
            let offset = address.checked_sub(section.address)?;
            (section.address != 0 && offset < section.bytes).then(|| section.offset.checked_add(offset))?
        };
        let text = read(&self.file, self.sections.iter().find_map(inside)?, bytes)?;
        let end = text.iter().position(|&byte| byte == 0)?;
        String::from_utf8(text[..end].to_vec()).ok()
    }

    fn find(&self, name: &str) -> Option<&[u8]> {
        self.symbols.chunks_exact(SYMBOL_BYTES).find(|symbol| {
            let at = u32_at(symbol, 0).unwrap_or(0) as usize;
            // Section 0: the symbol is used here, but defined elsewhere.
            let is_defined = symbol[6..8] != [0, 0];
            let rest = self.names.get(at..).unwrap_or_default();
            is_defined && rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        })
    }
}

fn section(header: &[u8]) -> Option<Section> {
    Some(Section {
        kind: u32_at(header, 4)?,
        address: u64_at(header, 16)?,
        offset: u64_at(header, 24)?,
        bytes: u64_at(header, 32)?.min(1 << 40),
        link: u32_at(header, 40)?,
    })
}

fn read(file: &File, offset: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut read = vec![0; usize::try_from(bytes).ok().filter(|_| bytes <= TABLE_BYTES)?];
    file.read_exact_at(&mut read, offset).ok()?;
    Some(read)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
