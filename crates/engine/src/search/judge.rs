//! The second opinion: a hit becomes a match only if libsecp256k1 (for a key), the target and the text say so.
//!
//! As many threads as there are cores verify what workers claim and make the results, keys and texts and all. The collector only
//! counts and tells them.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use warpsmith_chain::{Birthday, Form, Recipe};
use warpsmith_pattern::Filter;
use zeroize::Zeroizing;

use super::claims::Claim;
use super::message::{Claims, Facts, Judged, Message};
use super::{Job, Match, Rule, Solution, Wanted, Why};
use crate::details::Details;
use crate::origin::{Recovered, public_point};
use crate::recover::{Candidate, recompute};
use crate::secret::wiping_stack;
use crate::space::Subject;
use crate::worker::Hit;

/// How far a device's idea of the top 64 bits may be off before a hit counts as wrong.
const TOLERANCE: u64 = 1 << 40;

/// A thread that verifies, until nobody claims anything any more or nobody wants to know.
pub(super) fn judge(job: &Job<'_>, rule: Rule, claims: &Receiver<Claims>, collector: &Sender<Message>) {
    for Claims { worker, facts, claims } in claims {
        let verdicts = claims.into_iter().map(|claim| wiping_stack(|| verify(job, rule, &facts, claim)));
        let verdicts = verdicts.collect();
        if collector.send(Message::Judged { worker, verdicts }).is_err() {
            return;
        }
    }
}

/// Recomputes a hit's candidate from its source alone and looks at its text.
fn verify(job: &Job<'_>, rule: Rule, facts: &Facts, claim: Claim) -> Judged {
    let Claim { hit, source, may_be_shown } = claim;
    let (digest, candidate) = match recompute(&source, facts.numbering.as_ref(), &hit, job.subject) {
        Ok(both) => both,
        Err(what) => return Judged::Wrong(what),
    };
    if hit.digest.is_some_and(|told| told != digest) {
        return Judged::Wrong(format!("{:?} has another digest", hit.spot));
    }
    let address = job.subject.target().encode(&digest);
    if let Wanted::Best { ranking, .. } = &job.wanted {
        let score = ranking.score().of(&digest);
        let least = facts.filter.score.as_ref().map_or(0, |filter| filter.at_least);
        if score < hit.score.max(least) {
            return Judged::Wrong(format!("{:?} scores {score}, not {}", hit.spot, hit.score.max(least)));
        }
    }
    let why = Why::of(&job.wanted, &address, &digest);
    match why {
        Some(_) if rule == Rule::Count => Judged::Counted,
        // SEC: never of an origin that is in use.
        Some(why) if may_be_shown => {
            Judged::Match(Box::new(found(job.subject, &facts.device, candidate, address, why)))
        }
        None if !near(&facts.filter, &digest.words()) => not_in_filter(&hit),
        _ => Judged::False,
    }
}

fn not_in_filter(hit: &Hit) -> Judged {
    Judged::Wrong(format!("{:?} is not in the filter", hit.spot))
}

/// The result, but for when it was found.
pub(crate) fn found(
    subject: Subject<'_>,
    device: &str,
    candidate: Candidate,
    address: String,
    why: Why,
) -> Match {
    let target = subject.target();
    let (solution, details, public_details) = solution(subject, candidate);
    let nonce = match subject.recipe() {
        Recipe::Key(Form::Contract { nonce }) => Some(nonce),
        _ => None,
    };
    Match {
        target: target.name(),
        variant: target.variant(),
        address,
        why,
        solution,
        nonce,
        details,
        public_details,
        device: device.to_owned(),
        tried: 0,
        elapsed: Duration::ZERO,
    }
}

/// What leads to the address, with its details and those that hold no secret.
fn solution(subject: Subject<'_>, candidate: Candidate) -> (Solution, Details, Details) {
    match (candidate, subject) {
        (Candidate::Salt(salt), Subject::Salt(target)) => {
            let details = target.explain(&salt).into_iter();
            let details: Details = details.map(|(name, text)| (name, Zeroizing::new(text))).collect();
            (Solution::Salt(salt), details.clone(), details)
        }
        (Candidate::Key { recovered, public }, Subject::Key(target)) => {
            let (point, public_key) = (public_point(&public), public.serialize());
            let public_details = target.explain(&point, None, Birthday::New);
            match recovered {
                Recovered::Key(secret) => {
                    let export = target.export(secret.as_bytes());
                    let details = target.explain(&point, Some(secret.as_bytes()), Birthday::New);
                    (Solution::Key { public_key, secret, export }, details, public_details)
                }
                Recovered::Split { split, .. } => {
                    let details = public_details.clone();
                    (Solution::Split { public_key, split }, details, public_details)
                }
            }
        }
        (Candidate::Salt(_), Subject::Key(_)) | (Candidate::Key { .. }, Subject::Salt(_)) => {
            unreachable!("a candidate is recomputed as what the job searches")
        }
    }
}

/// Whether the filter accepts the digest, or one whose top bits differ by no more than the tolerance.
fn near(filter: &Filter, words: &[u64; 4]) -> bool {
    // Ranges are sorted and disjoint: one may hold the value, its neighbours may lie near it.
    let after = filter.top.partition_point(|i| i.first <= words[0]);
    let around = after.saturating_sub(1)..(after + 1).min(filter.top.len());
    let edges = [filter.top.first(), filter.top.last()].into_iter().flatten();
    let near_top = filter.top[around].iter().chain(edges).any(|i| {
        let first = i.first.wrapping_sub(TOLERANCE);
        words[0].wrapping_sub(first) <= (i.last - i.first).saturating_add(2 * TOLERANCE)
    });
    near_top || filter.terms.iter().any(|t| t.accepts(words))
}
