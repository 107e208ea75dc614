//! The constants, compared with the installed headers.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;
use crate::error::Error;

/// Returns the values of C expressions, by a compiler of MPI programs; `None` if it is not
/// installed.
fn by_c(compiler: &str, expressions: &[String]) -> Option<Vec<i64>> {
    let mut program =
        "#include <stddef.h>\n#include <stdio.h>\n#include <mpi.h>\nint main(void){\n".to_owned();
    for expression in expressions {
        program += &format!("printf(\"%lld\\n\", (long long)({expression}));\n");
    }
    program += "return 0;}\n";
    let directory = std::env::temp_dir().join(format!("mpi-header-{}-{compiler}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let binary = directory.join("constants");
    let compiler = Command::new(compiler)
        .args(["-w", "-x", "c", "-", "-o"])
        .arg(&binary)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let printed = compiler.ok().map(|mut compiler| {
        compiler.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        let compiled = compiler.wait_with_output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap()
    });
    std::fs::remove_dir_all(&directory).unwrap();
    Some(printed?.lines().map(|line| line.parse().unwrap()).collect())
}

/// Reports that a test is skipped, or fails if `mpi` is required.
fn skip(compiler: &str) {
    let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word == "mpi"), "{compiler} is required here");
    println!("SKIPPED: {compiler} is not installed (apt-get install libopenmpi-dev libmpich-dev)");
}

#[test]
fn the_constants_of_open_mpi_are_those_of_its_header() {
    // A handle is the address of its symbol: the expression is 1 if the header agrees.
    let handles = Handles::ROWS.iter().map(|(name, row)| format!("(void*){name} == (void*)&{}", row.0));
    let numbers = Numbers::ROWS.iter().map(|(name, _)| (*name).to_owned());
    let expressions: Vec<_> = handles.chain(numbers).collect();
    let Some(c) = by_c("mpicc.openmpi", &expressions) else { return skip("mpicc.openmpi") };
    let handles = Handles::ROWS.iter().map(|_| 1);
    let expected: Vec<_> = handles.chain(Numbers::ROWS.iter().map(|(_, row)| i64::from(row.0))).collect();
    for ((expression, c), expected) in expressions.iter().zip(c).zip(expected) {
        assert_eq!(c, expected, "{expression}");
    }
}

#[test]
fn the_constants_of_mpich_are_those_of_its_header() {
    let names =
        Handles::ROWS.iter().map(|(name, _)| *name).chain(Numbers::ROWS.iter().map(|(name, _)| *name));
    let expressions: Vec<_> = names.map(str::to_owned).collect();
    let Some(c) = by_c("mpicc.mpich", &expressions) else { return skip("mpicc.mpich") };
    let handles = Handles::ROWS.iter().map(|(_, row)| row.1 as i64);
    let expected: Vec<_> = handles.chain(Numbers::ROWS.iter().map(|(_, row)| i64::from(row.1))).collect();
    for ((expression, c), expected) in expressions.iter().zip(c).zip(expected) {
        assert_eq!(c, expected, "{expression}");
    }
}

#[test]
fn an_open_mpi_without_a_symbol_is_refused() {
    let lacks = |symbol| Error::Lacks { function: symbol, path: "libmpi.so.40".into() };
    let found =
        Constants::of(
            Abi::OpenMpi,
            |symbol| {
                if symbol == "ompi_request_null" { Err(lacks(symbol)) } else { Ok(1) }
            },
        );
    assert_eq!(found.err(), Some(lacks("ompi_request_null")));
    let mpich = Constants::of(Abi::Mpich, |symbol| Err(lacks(symbol))).expect("it has numbers");
    assert_eq!(mpich.handles.comm_world, 0x4400_0000);
}
