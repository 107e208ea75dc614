//! A library's functions, as a table.

/// Defines `Functions` from lines `field = c"symbol": fn(types) -> type`, and `functions()`, which
/// opens the library once.
macro_rules! functions {
    (
        $library:literal, $project:literal, $package:literal;
        $($field:ident = $symbol:literal: fn($($of:ty),*) $(-> $gives:ty)?,)+
    ) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($of),*) $(-> $gives)?,)+
        }

        fn functions() -> Result<&'static Functions, String> {
            static FUNCTIONS: std::sync::OnceLock<Result<Functions, String>> = std::sync::OnceLock::new();
            let load = || {
                let library = verbs::library::Library::open($library, $project, $package)?;
                // SAFETY: the library's headers declare these types, and its soname changes when
                // they do.
                Ok(unsafe { Functions { $($field: library.function($symbol)?,)+ } })
            };
            FUNCTIONS.get_or_init(load).as_ref().map_err(Clone::clone)
        }
    };
}

pub(super) use functions;
