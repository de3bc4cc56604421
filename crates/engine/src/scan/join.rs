//! How devices join a scan, and how their scanners begin.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use warpsmith_chain::Form;

use super::ScanJob;
use super::prove::{Unproved, like, prove, prove_mask};
use super::thread::{Message, Shared};
use crate::error::Error;
use crate::later::aside;
use crate::run::pool::{Closed, Entry, PoolEvent, Refusal, Work};
use crate::run::session::Member;
use crate::worker::{Backend, Fault, Held};

/// What all devices of a scan have in common.
pub(super) struct ScanWork<'w> {
    pub job: &'w ScanJob<'w>,
    pub forms: &'w [Form],
    pub shared: &'w Shared<'w>,
    pub collector: Sender<Message>,
}

impl Work for ScanWork<'_> {
    fn enlist(&self, entry: Entry<'_>) {
        let device = entry.device();
        let Some(held) = entry.prepare(&|| self.warm(&device), &|| self.prove(device.as_ref())) else {
            return;
        };
        entry.spread(device.scanners(), held, &|held, entry| self.serve(device.as_ref(), held, entry));
    }

    fn report(&self, event: PoolEvent) -> Result<(), Closed> {
        self.collector.send(Message::Pool(event)).map_err(|_| Closed)
    }
}

impl ScanWork<'_> {
    /// Opens a card and compiles what this scan takes, so that its next scanner is there at once. Programs depend on the kind of the
    /// filter, not on what it holds.
    fn warm(&self, device: &Arc<dyn Backend>) -> Receiver<Result<Held, Fault>> {
        let (device, forms, mask) = (Arc::clone(device), self.forms.to_vec(), self.job.mask.cloned());
        let filter = like(self.job.targets.filter(), &[0]);
        aside(move || {
            let (held, filter) = (device.hold(), filter?);
            let mut scanner = device.scanner(&forms, &filter)?;
            mask.map_or(Ok(()), |mask| scanner.follow(&mask))?;
            Ok(held)
        })
    }

    fn prove(&self, device: &dyn Backend) -> Result<(), Refusal> {
        let filter = self.job.targets.filter();
        let proved = match self.job.mask {
            None => prove(device, self.forms, filter),
            Some(mask) => prove_mask(device, self.forms, filter, mask),
        };
        match proved {
            Ok(_) => Ok(()),
            Err(Unproved::Unable(why)) => Err(Refusal::Unable(why)),
            Err(Unproved::Failed(what)) => {
                Err(Refusal::Failed(Error::SelfTest { device: device.id(), what }))
            }
        }
    }

    /// Makes a scanner, has it join, and scans until the scan ends.
    fn serve(&self, device: &dyn Backend, held: Held, entry: Entry<'_>) {
        let made = device.scanner(self.forms, self.job.targets.filter()).and_then(|mut scanner| {
            self.job.mask.map_or(Ok(()), |mask| scanner.follow(mask))?;
            Ok(scanner)
        });
        let scanner = match made {
            Ok(scanner) => scanner,
            Err(what) => return entry.lose(what),
        };
        // The scanner keeps it open from here on; held any longer, a card that fails could not be opened anew.
        drop(held);
        let member = Member::new(device);
        let (counter, dismissed) = (Arc::clone(&member.counter), Arc::clone(&member.dismissed));
        let tell = || self.collector.send(Message::Joined(Box::new(member))).is_ok();
        let Some(worker) = entry.join(tell) else { return };
        self.shared.work(worker, scanner, (&counter, &dismissed), &self.collector);
    }
}
