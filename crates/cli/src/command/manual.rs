//! `warpsmith completions` and `warpsmith man`.
//!
//! Both are made from the definitions that `--help` is made from, so neither can fall behind a new flag.

use clap::{Args, CommandFactory};
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
  warpsmith man npub > warpsmith-npub.1")]
pub(crate) struct Man {
    /// The command, such as npub
    command: Option<String>,
}

impl Man {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let mut all = Cli::command();
        // Gives the commands their full names, which stand in the title (warpsmith-npub) and the synopsis.
        all.build();
        let page = match &self.command {
            None => all,
            Some(name) => all.find_subcommand(name).cloned().ok_or_else(|| {
                let names: Vec<&str> = all.get_subcommands().map(|command| command.get_name()).collect();
                Failure::Usage(format!("'{name}' is no command of warpsmith; there are {}", names.join(", ")))
            })?,
        };
        let mut text = Vec::new();
        let rendered = clap_mangen::Man::new(page)
            .source(concat!("warpsmith ", env!("CARGO_PKG_VERSION")))
            .render(&mut text);
        rendered.map_err(|error| Failure::Other(format!("the manual page cannot be made: {error}")))?;
        stdout.show(&text)?;
        Ok(Ending::Done)
    }
}
