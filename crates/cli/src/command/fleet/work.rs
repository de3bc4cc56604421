//! `fleet work`: this machine as a worker.

use std::path::PathBuf;

use clap::Args;
use warpsmith::fleet::net::home::Invitation;
use warpsmith::fleet::net::work::{Told, work};
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stderr::report;
use zeroize::Zeroizing;

use crate::failures::OrFail as _;
use crate::running::OpenDevices as _;

/// Work for a fleet, with any number of devices, until stopped
#[derive(Args)]
pub(crate) struct Work {
    /// The invitation, a file that holds it, or - for standard input
    #[arg(value_name = "INVITATION|FILE|-")]
    invitation: String,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Where finished work waits until the fleet has it [default: warpsmith/fleet in $XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// An invitation has some hundred characters.
const MOST: u64 = 4096;

/// The name of a worker's spool: other fleets have workers of the same number, and would refuse its reports.
fn spool_name(invitation: &Invitation) -> String {
    let fleet: String = invitation.fingerprint.chars().take(16).collect();
    format!("{fleet}-worker-{}", invitation.id)
}

impl Work {
    fn invitation(&self) -> Result<Invitation, Failure> {
        if Invitation::is_one(&self.invitation) {
            return Invitation::read(&self.invitation).or_fail();
        }
        let bytes = match self.invitation.as_str() {
            "-" => warpsmith_console::input::read("-", MOST)
                .map(Zeroizing::new)
                .map_err(|why| format!("standard input: {why}")),
            file => warpsmith_files::read_secret(file.as_ref(), MOST).map_err(|error| error.to_string()),
        };
        let bytes = bytes.map_err(|why| {
            Failure::Usage(format!(
                "no invitation: {why}; give the line that `warpsmith fleet invite` prints, or a file with it"
            ))
        })?;
        Invitation::read(&String::from_utf8_lossy(&bytes)).or_fail()
    }

    fn spool(&self, invitation: &Invitation) -> Result<PathBuf, Failure> {
        let state = || {
            let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
            let home = || std::env::home_dir().map(|home| home.join(".local/state"));
            state.or_else(home).map(|state| state.join("warpsmith/fleet"))
        };
        let folder = self.spool.clone().or_else(state);
        let folder =
            folder.ok_or_else(|| Failure::Usage("there is no home folder; say --spool DIR".to_owned()))?;
        Ok(folder.join(spool_name(invitation)))
    }

    pub fn run(&self) -> Result<ExitStatus, Failure> {
        let invitation = self.invitation()?;
        let devices = self.devices.open()?;
        let stop = interrupt()?;
        if !self.quiet {
            let names: Vec<String> = devices.describe().into_iter().map(|(id, _)| id).collect();
            report(&format!(
                "worker {} of the fleet at {}, with {}",
                invitation.name,
                invitation.server,
                names.join(", ")
            ));
        }
        let spool = self.spool(&invitation)?;
        let worked = work(&invitation, &devices, &spool, &stop, &|told| match told {
            Told::Note(text) => report(&text),
            Told::Unit { device, candidates, shares, time } if !self.quiet => report(&format!(
                "{device}: a unit of {} counts, {shares} shares, {}",
                human::count(candidates),
                human::rate(candidates / time.as_secs_f64().max(1e-9))
            )),
            Told::Unit { .. } => {}
        });
        worked.or_fail()?;
        Ok(ExitStatus::Interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_different_fleets_have_different_spools() {
        let of = |fingerprint: &str, id| {
            let fingerprint = fingerprint.repeat(32);
            let (server, name, seed) = ("h:1".to_owned(), "rig".to_owned(), Zeroizing::default());
            spool_name(&Invitation { server, fingerprint, id, name, seed })
        };
        assert_eq!(of("ab", 1), "abababababababab-worker-1");
        assert_ne!(of("ab", 1), of("cd", 1));
        assert_ne!(of("ab", 1), of("ab", 2));
    }
}
