//! Scratch files of a build.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::Error;

/// A file without a name, so that nothing is left of it whatever happens. It has one for a moment, in which only we are
/// building.
pub(super) fn scratch_file(path: &Path) -> Result<File, Error> {
    let failed = || Error::io("write", path);
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed()(error)),
        _ => {}
    }
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path).map_err(failed())?;
    fs::remove_file(path).map_err(failed())?;
    Ok(file)
}
