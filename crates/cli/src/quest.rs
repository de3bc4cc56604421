//! What a command searches: said by its flags, shown on the screen, given to the library.

use warpsmith::fleet::job::Sought;
use warpsmith::keys::PublicKey;
use warpsmith::pattern::{Options, Score};
use warpsmith::search::Subject;

/// What a command searches.
pub(crate) struct Quest<'a> {
    pub subject: Subject<'a>,
    pub options: Options,
    /// The best instead of a pattern.
    pub score: Option<(Score, Option<u32>)>,
    pub split: Option<PublicKey>,
    /// The same for workers of a fleet.
    pub sought: Sought,
}
