//! What a command searches: said by its flags, shown on the screen, given to the library.

use warpsmith::fleet::job::Sought;
use warpsmith::keys::PublicKey;
use warpsmith::pattern::Options;
use warpsmith::search::Subject;
use warpsmith_console::exit::Failure;

use crate::factory::CodeFile;
use crate::scores::Contest;

/// What a command searches.
pub(crate) struct Quest<'a> {
    pub subject: Subject<'a>,
    pub options: Options,
    /// The best, of all or of what matches.
    pub contest: Option<Contest>,
    pub split: Option<PublicKey>,
    /// The same for workers of a fleet.
    pub sought: Sought,
    /// The creation code that results name, where it must be written for them.
    pub code: Option<CodeFile>,
}

impl Quest<'_> {
    /// Writes what results name, once all else is ready.
    pub fn prepare(&self) -> Result<(), Failure> {
        self.code.as_ref().map_or(Ok(()), CodeFile::write)
    }
}
