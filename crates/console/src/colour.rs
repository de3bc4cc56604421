//! `--color`: whether output on the terminal and help have colours.
//!
//! The command line takes precedence over `WARPSMITH_COLOR`, and that over the configuration files. Where none of them says `always` or
//! `never`, `NO_COLOR` (no-color.org) turns colours off, and otherwise a terminal has them.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::OnceLock;

use clap::ValueEnum;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also where the output is no terminal
    Always,
    #[allow(missing_docs)] // Documentation would show in help.
    Never,
}

impl Colour {
    /// Parses `auto`, `always` or `never`.
    pub fn parse(text: &str) -> Result<Colour, String> {
        Colour::from_str(text, false).map_err(|_| format!("'{text}': expected auto, always or never"))
    }

    /// Returns the name that [`Colour::parse`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Colour::Auto => "auto",
            Colour::Always => "always",
            Colour::Never => "never",
        }
    }

    /// Returns the choice of a command line that has not been parsed yet, since the parser's own help has colours.
    fn from_arguments(arguments: impl Iterator<Item = OsString>) -> Option<Colour> {
        let mut arguments = arguments.take_while(|argument| argument != "--");
        let mut choice = None;
        while let Some(argument) = arguments.next() {
            let argument = argument.to_string_lossy();
            let value = match argument.strip_prefix("--color") {
                Some("") => arguments.next().map(|value| value.to_string_lossy().into_owned()),
                Some(value) => value.strip_prefix('=').map(str::to_owned),
                None => None,
            };
            choice = value.and_then(|value| Colour::parse(&value).ok()).or(choice);
        }
        choice
    }
}

impl From<Colour> for clap::ColorChoice {
    fn from(colour: Colour) -> clap::ColorChoice {
        match colour {
            Colour::Auto => clap::ColorChoice::Auto,
            Colour::Always => clap::ColorChoice::Always,
            Colour::Never => clap::ColorChoice::Never,
        }
    }
}

static CHOICE: OnceLock<Colour> = OnceLock::new();

/// Decides for this process, by its arguments, this configured value and the environment.
pub fn choose(configured: Option<Colour>) -> Colour {
    *CHOICE.get_or_init(|| {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        decide(Colour::from_arguments(std::env::args_os().skip(1)).or(configured), no_color)
    })
}

/// Decides by what was asked for: `NO_COLOR` turns automatic colours off.
fn decide(asked: Option<Colour>, no_color: bool) -> Colour {
    match asked.unwrap_or(Colour::Auto) {
        Colour::Auto if no_color => Colour::Never,
        colour => colour,
    }
}

/// Returns whether output on stderr has colours.
pub fn on_stderr() -> bool {
    match choose(None) {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => std::io::stderr().is_terminal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_turns_automatic_colours_off() {
        for asked in [None, Some(Colour::Auto)] {
            assert_eq!([false, true].map(|no_color| decide(asked, no_color)), [Colour::Auto, Colour::Never]);
        }
        for asked in [Colour::Always, Colour::Never] {
            assert_eq!([false, true].map(|no_color| decide(Some(asked), no_color)), [asked; 2]);
        }
    }

    #[test]
    fn the_flag_is_found_before_the_command_line_is_parsed() {
        let asked = |text: &str| Colour::from_arguments(text.split(' ').map(OsString::from));
        assert_eq!(asked("npub cafe --color never"), Some(Colour::Never));
        assert_eq!(asked("--color=always npub cafe"), Some(Colour::Always));
        assert_eq!(asked("--color never --color=auto"), Some(Colour::Auto));
        for none in ["npub cafe", "--color red", "--color", "--colors never", "npub -- --color never"] {
            assert_eq!(asked(none), None, "{none}");
        }
        assert!(Colour::parse("red").is_err_and(|why| why.contains("auto, always or never")));
    }
}
