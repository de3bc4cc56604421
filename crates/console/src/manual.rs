//! The commands `completions` and `man`.
//!
//! Both use the definitions that `--help` uses, so they always match the flags.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::{ExitStatus, Failure};
use crate::program_name;
use crate::stdout::Stdout;

fn completions_help() -> String {
    let name = program_name();
    format!(
        "Examples:\n  {name} completions bash > ~/.local/share/bash-completion/completions/{name}\n  {name} completions fish > \
         ~/.config/fish/completions/{name}.fish"
    )
}

fn man_help() -> String {
    let name = program_name();
    format!(
        "Examples:\n  {name} man > {name}.1\n  {name} man devices > {name}-devices.1\n  {name} man config show > \
         {name}-config-show.1\n  {name} man --folder ~/.local/share/man/man1      every page, each in a file of its own"
    )
}

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = completions_help())]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script for this command line.
    pub fn run(&self, mut command: Command, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let (name, mut script) = (command.get_name().to_owned(), Vec::new());
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        stdout.show(&script)?;
        Ok(ExitStatus::Done)
    }
}

/// Print the manual page, or that of one command
#[derive(Args)]
#[command(after_help = man_help())]
pub struct Man {
    /// The command, such as devices or config show
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Write every page to a file in this folder, which is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    folder: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages of this command line.
    pub fn run(&self, mut all: Command, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        // Gives the commands their full names, which stand in the title (warpsmith-npub) and the synopsis.
        all.build();
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
            write_pages(&all, folder)?;
            return Ok(ExitStatus::Done);
        }
        let page = self.words.iter().try_fold(&all, |within, word| {
            within.find_subcommand(word).ok_or_else(|| {
                let names: Vec<&str> = within.get_subcommands().map(|command| command.get_name()).collect();
                let name = within.get_bin_name().unwrap_or_else(|| within.get_name());
                Failure::Usage(match names.is_empty() {
                    true => format!("'{word}' is no command of {name}, which has none"),
                    false => format!("'{word}' is no command of {name}; there are {}", names.join(", ")),
                })
            })
        })?;
        stdout.show(&render(page)?)?;
        Ok(ExitStatus::Done)
    }
}

/// Returns the full name of a command, as pages are named.
fn full_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn render(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .source(format!("{} {}", program_name(), command.get_version().unwrap_or(env!("CARGO_PKG_VERSION"))))
        .render(&mut text)
        .map_err(|error| Failure::Other(format!("the manual page cannot be made: {error}")))?;
    Ok(text)
}

/// Writes the pages of a command and its subcommands, except `help`, which every page explains.
fn write_pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let file = folder.join(format!("{}.1", full_name(command)));
    fs::write(&file, render(command)?).map_err(|error| unwritten(&file, &error))?;
    let parts = command.get_subcommands().filter(|part| part.get_name() != "help");
    parts.into_iter().try_for_each(|part| write_pages(part, folder))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other(format!("--folder: {} cannot be written: {error}", path.display()))
}
