//! Files that hold secrets, or a record that must not be lost.
//!
//! What holds for each of them:
//! - **Ours.** A file belongs to whoever runs the program, and nobody else can put another in its place: its folder, and
//!   every folder above, belongs to the same user or to the system, and others may write to it only under the sticky bit.
//! - **Itself.** No name is followed through a symbolic link to write, and no file with a second name is written.
//! - **Private.** A file with secrets has mode 0600 from the moment it exists; one that others may read is refused.
//! - **Whole.** A file is replaced by writing another, forcing it to disk and renaming it, so that at any moment, also
//!   after a loss of power, the name leads to the old content or to the new.
//! - **Held once.** A lock lies on the file itself, not on a name beside it, so that two ways to one file meet.
//!
//! The rules are those of Unix; the program runs there.

mod draft;
mod error;
mod locked;
mod private;
mod replace;
mod settings;
mod token;

pub use draft::Draft;
pub use error::{Error, Result};
pub use locked::Locked;
pub use private::{Sharing, append, check, check_folder, create, open, read_secret, reserve, scratch};
pub use replace::{is_at, replace, sync_folder_of, with_suffix};
pub use settings::{Settings, read_settings};
pub use token::{Token, TokenError};
