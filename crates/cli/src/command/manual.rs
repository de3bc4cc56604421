//! `warpsmith completions` and `warpsmith man`.
//!
//! Both are made from the definitions that `--help` is made from, so neither can fall behind a new flag.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::ending::{Ending, Failure};
use crate::stdout::Stdout;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  warpsmith completions bash > ~/.local/share/bash-completion/completions/warpsmith
  warpsmith completions fish > ~/.config/fish/completions/warpsmith.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "warpsmith", &mut script);
        stdout.show(&script)?;
        Ok(Ending::Done)
    }
}

/// Print the manual page, or that of one command
#[derive(Args)]
#[command(after_help = "\
Examples:
  warpsmith man > warpsmith.1
  warpsmith man npub > warpsmith-npub.1
  warpsmith man pir serve > warpsmith-pir-serve.1
  warpsmith man --folder ~/.local/share/man/man1      every page, each in a file of its own")]
pub(crate) struct Man {
    /// The command, such as npub or pir serve
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Write every page to a file in this folder, which is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    folder: Option<PathBuf>,
}

impl Man {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let mut all = Cli::command();
        // Gives the commands their full names, which stand in the title (warpsmith-npub) and the synopsis.
        all.build();
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
            write_pages(&all, folder)?;
            return Ok(Ending::Done);
        }
        let page = self.words.iter().try_fold(&all, |within, word| {
            within.find_subcommand(word).ok_or_else(|| {
                let names: Vec<&str> = within.get_subcommands().map(|command| command.get_name()).collect();
                let name = full_name(within).replace('-', " ");
                Failure::Usage(match names.is_empty() {
                    true => format!("'{word}' is no command of {name}, which has none"),
                    false => format!("'{word}' is no command of {name}; there are {}", names.join(", ")),
                })
            })
        })?;
        stdout.show(&render(page)?)?;
        Ok(Ending::Done)
    }
}

/// The name of a command with those it is a part of, as pages are named.
fn full_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn render(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .source(concat!("warpsmith ", env!("CARGO_PKG_VERSION")))
        .render(&mut text)
        .map_err(|error| Failure::Other(format!("the manual page cannot be made: {error}")))?;
    Ok(text)
}

/// The page of a command, and of all that are part of it but `help`, which every page explains.
fn write_pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let file = folder.join(format!("{}.1", full_name(command)));
    fs::write(&file, render(command)?).map_err(|error| unwritten(&file, &error))?;
    let parts = command.get_subcommands().filter(|part| part.get_name() != "help");
    parts.into_iter().try_for_each(|part| write_pages(part, folder))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other(format!("--folder: {} cannot be written: {error}", path.display()))
}
