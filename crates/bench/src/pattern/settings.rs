//! The settings that a pattern reads from a point: a row for each axis that not all patterns have.

/// Defines `Settings`, with a field for each axis of its own that a pattern reads and the field's
/// default, and `AXES`, the axes that not every pattern has. The axes in `usual` belong to each of
/// its points, even where a plan does not name them; the axes in `asked` only to points whose plan
/// names them. The axes in `messages` say how an endpoint carries messages: the pattern itself does
/// not read them.
macro_rules! settings {
    (
        $(usual { $($field:ident: $type:ty = $key:ident or $value:expr,)+ })?
        $(asked { $($asked:ident: $asked_type:ty = $asked_key:ident or $asked_value:expr,)+ })?
        $(messages { $($message:ident,)+ })?
    ) => {
        pub(super) const AXES: &[&$crate::axis::AxisRow] = &[
            $($($crate::axis::$key.row,)+)?
            $($($crate::axis::$asked_key.row,)+)?
            $($($crate::axis::$message.row,)+)?
        ];

        /// The settings of a point.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Settings {
            $($(pub(super) $field: $type,)+)?
            $($(pub(super) $asked: $asked_type,)+)?
        }

        impl Settings {
            pub(super) fn of(spec: &$crate::point::PointSpec) -> Self {
                Self {
                    $($($field: $crate::axis::$key.at(&spec.axes).unwrap_or($value),)+)?
                    $($($asked: $crate::axis::$asked_key.at(&spec.axes).unwrap_or($asked_value),)+)?
                }
            }

            $(
                /// The usual axes with their default values.
                pub(super) fn usual() -> Vec<$crate::axis::Axis> {
                    vec![$($crate::axis::$key.value($value)),+]
                }
            )?
        }
    };
}

pub(crate) use settings;
