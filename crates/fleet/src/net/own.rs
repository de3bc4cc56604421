//! Jobs of one's own folder: what was found, made into keys here, and their status without a coordinator.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::home::Home;
use super::status::{JobStatus, Status};
use crate::duty::{Duty, Found};
use crate::error::{Error, Result};
use crate::folder::{self, FOUND, FoundAt, Wishes, read_found};
use crate::id::{JobId, JobIdError};
use crate::job::Descriptor;
use crate::ledger::Standing;
use crate::secrets::Master;

/// The folder of a job, by its name or the beginning of it.
pub fn find(home: &Home, name: &str) -> Result<(JobId, PathBuf)> {
    let folder = home.jobs();
    let entries = std::fs::read_dir(&folder).map_err(Error::io(&folder))?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut fitting: Vec<String> = names.filter(|job| job.starts_with(name)).collect();
    match (fitting.pop(), fitting.is_empty()) {
        (Some(job), true) => {
            let id = job.parse().map_err(|error: JobIdError| Error::corrupt(&folder, error.to_string()))?;
            Ok((id, folder.join(job)))
        }
        (Some(_), false) => Err(Error::Usage(format!("several jobs begin with '{name}'; give more digits"))),
        (None, _) => Err(Error::Usage(format!(
            "no job begins with '{}'; `warpsmith fleet status` lists those there are",
            name.escape_debug()
        ))),
    }
}

/// A job of the folder, made ready to make keys of what was found.
pub struct OwnJob {
    id: JobId,
    folder: PathBuf,
    descriptor: Descriptor,
    duty: Duty,
    master: Master,
    /// Identities of matches that were delivered, those of them that are not on disk yet, and lines that were reported as damaged.
    delivered: HashSet<String>,
    unsaved: Vec<String>,
    reported: HashSet<usize>,
    /// Length of the file of matches when it was last read, and when it was changed.
    seen: Option<(u64, SystemTime)>,
}

/// Matches of a job that are new, and damage that was found on the way.
#[derive(Debug, Default)]
pub struct NewMatches {
    /// Matches, made of their secrets and verified.
    pub found: Vec<Found>,
    /// Lines of the file of matches that cannot be delivered, each with its file and number.
    pub damage: Vec<String>,
}

impl OwnJob {
    /// The job in this folder.
    pub fn open(id: JobId, folder: PathBuf) -> Result<OwnJob> {
        let path = folder.join("job.json");
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        let descriptor = Descriptor::read(&text, &id)?;
        let master = Master::open(&folder.join("master"), id)?;
        let duty = Duty::open(&folder, &descriptor, &master)?;
        Ok(OwnJob {
            id,
            folder,
            descriptor,
            duty,
            master,
            delivered: HashSet::new(),
            unsaved: Vec::new(),
            reported: HashSet::new(),
            seen: None,
        })
    }

    /// Leaves out what was delivered in an earlier run.
    pub fn skip_told(mut self) -> Result<OwnJob> {
        self.delivered = folder::read_delivered(&self.folder)?;
        Ok(self)
    }

    /// Remembers what was delivered.
    pub fn remember(&mut self) -> Result<()> {
        if !self.unsaved.is_empty() {
            folder::add_delivered(&self.folder, &self.unsaved)?;
            self.unsaved.clear();
        }
        Ok(())
    }

    /// What was found since the last time, each made of its secret and verified by libsecp256k1. A line that is damaged, or leads to
    /// no match, is named once, and takes no other match along.
    pub fn take_new(&mut self) -> Result<NewMatches> {
        let (path, mut new) = (self.folder.join(FOUND), NewMatches::default());
        let seen = std::fs::metadata(&path).ok().and_then(|file| Some((file.len(), file.modified().ok()?)));
        if seen.is_some() && seen == self.seen {
            return Ok(new);
        }
        let file = read_found(&path)?;
        self.seen = seen;
        let mut damage = file.damage;
        for (line, found) in &file.records {
            let identity = found.identity();
            if self.delivered.contains(&identity) {
                continue;
            }
            match self.make(found) {
                // One key may be several addresses.
                Ok(made) => {
                    new.found.extend(made);
                    self.delivered.insert(identity.clone());
                    self.unsaved.push(identity);
                }
                Err(error) => damage.push((*line, error.to_string())),
            }
        }
        damage.retain(|(line, _)| self.reported.insert(*line));
        new.damage.extend(damage.into_iter().map(|(line, why)| {
            format!(
                "{}, line {line}: this match cannot be delivered, since {why}; all others are. A copy of the file may have it whole",
                path.display()
            )
        }));
        Ok(new)
    }

    fn make(&self, found: &FoundAt) -> Result<Vec<Found>> {
        let mut made = self.duty.settle(&self.master, &found.lease, found.spot)?;
        for made in &mut made {
            if let Found::Match(made) = made {
                made.tried = found.tried.min(u128::from(u64::MAX)) as u64;
                made.elapsed = Duration::from_secs_f64(found.seconds.clamp(0.0, 1e9));
            }
        }
        Ok(made)
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.folder.join("over").exists()
    }

    /// Whether somebody ended it.
    pub fn is_cancelled(&self) -> bool {
        self.folder.join("cancelled").exists()
    }

    /// Its name.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Keys of what is done so far.
    pub fn covered(&self) -> Result<u128> {
        Ok(self.standing()?.keys)
    }

    fn standing(&self) -> Result<Standing> {
        let path = self.folder.join("ledger");
        // A job that no coordinator has led yet has none.
        if path.exists() { crate::ledger::look(&path, self.id) } else { Ok(Standing::default()) }
    }

    /// Its status as the folder has it, without a coordinator.
    pub fn status(&self) -> Result<JobStatus> {
        let (standing, wishes) = (self.standing()?, Wishes::read(&self.folder)?);
        let tried = standing.keys as f64;
        let status = JobStatus {
            job: Some(self.descriptor.summary()),
            units: standing.units,
            tried,
            expected: tried * self.duty.odds(),
            priority: wishes.priority,
            over: self.is_over(),
            cancelled: self.is_cancelled(),
            share: self.duty.numbers().map(|numbers| standing.units as f64 / numbers as f64),
            ..JobStatus::new(self.id)
        };
        let found: Vec<FoundAt> =
            read_found(&self.folder.join(FOUND))?.records.into_iter().map(|(_, found)| found).collect();
        Ok(status.with_found(&found))
    }
}

/// Adds to a status the jobs of the folder that no coordinator reports, oldest first.
pub fn add_jobs_of(status: &mut Status, home: &Home) -> Result<()> {
    let jobs = home.jobs();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&jobs).map_err(Error::io(&jobs))?.flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse::<JobId>().ok());
        // Written last: a folder without it is being made.
        let text = std::fs::metadata(entry.path().join("job.json"));
        let Some((id, text)) = id.zip(text.ok()) else { continue };
        if status.jobs.iter().all(|job| job.id != id) {
            found.push((text.modified().ok(), id, entry.path()));
        }
    }
    found.sort();
    status.jobs.extend(found.into_iter().map(|(_, id, folder)| status_of(id, &folder)));
    Ok(())
}

/// The status of a job that no coordinator leads, as its folder has it.
fn status_of(id: JobId, folder: &Path) -> JobStatus {
    OwnJob::open(id, folder.to_owned()).and_then(|job| job.status()).unwrap_or_else(|error| JobStatus {
        problem: Some(error.to_string()),
        over: folder.join("over").exists(),
        cancelled: folder.join("cancelled").exists(),
        ..JobStatus::new(id)
    })
}
