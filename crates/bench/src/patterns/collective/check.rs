//! What a plan must not ask of collective operations.

use crate::Error;
use crate::axis;
use crate::endpoint::collectives::Collective;
use crate::pattern::check::Check;
use crate::pattern::joint;

/// Checks an experiment of collective operations.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    joint::length(check)?;
    let reduces = check.0.axes.get(axis::COLLECTIVE).into_iter().find(|of| Collective::reduces(*of));
    let (Some(operation), elements) = (reduces, check.0.axes.get(axis::DATATYPE)) else { return Ok(()) };
    let sizes = check.0.axes.get(axis::SIZE_BYTES);
    for element in elements {
        let bytes = element.bytes() as u64;
        if let Some(size) = sizes.iter().find(|size| !size.is_multiple_of(bytes)) {
            let what = format!("{} of {size} B", operation.word());
            let why = format!("a vector of {} has a multiple of {bytes} B", element.word());
            return check.refuse("size_bytes", &what, &why);
        }
    }
    Ok(())
}
