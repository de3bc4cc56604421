//! How likely a random text matches an expression: the sets of automaton states a text can lead to, with their
//! probabilities, symbol by symbol.
//!
//! Takes the symbols of different positions as independent, each as likely as its position says. That is exact for
//! data symbols; a checksum is as good as random, so only expressions that fix nearly the whole text would
//! show a difference. Knows no regex syntax and no filter.

use std::collections::HashMap;

use crate::expr::{Expr, Look};
use crate::length::{Length, Set};
use crate::text::Text;

/// How a random text fares. The two do not add up to exactly 1, because both are rounded; but each is zero only when
/// it cannot happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chance {
    pub hit: f64,
    pub miss: f64,
}

/// The chance that the expression matches somewhere in a random text; `None` when that is too much work to tell.
pub(crate) fn chance(expr: &Expr, text: &Text) -> Option<Chance> {
    let mut walk = Walk {
        nfa: Nfa::new(expr, text.len())?,
        text,
        work: MOST_WORK,
        ids: HashMap::new(),
        sets: Vec::new(),
        steps: Vec::new(),
    };
    let (mut hit, mut miss) = (0.0, 0.0);
    for length in &text.lengths {
        let chance = walk.run(length)?;
        hit += length.share * chance.hit;
        miss += length.share * chance.miss;
    }
    // Sums of rounded chances may end a little above 1.
    Some(Chance { hit: f64::min(hit, 1.0), miss })
}

/// States of the automaton, distinct sets of them, and state visits before giving up. Together they bound a call to
/// tens of milliseconds.
const MOST_STATES: usize = 4096;
const MOST_SETS: usize = 4096;
const MOST_WORK: usize = 10_000_000;

enum State {
    One(Set, usize),
    Look(Look, usize),
    Split(Vec<usize>),
    Match,
}

struct Nfa {
    states: Vec<State>,
    start: usize,
}

impl Nfa {
    fn new(expr: &Expr, length: usize) -> Option<Self> {
        let mut nfa = Self { states: vec![State::Match], start: 0 };
        nfa.start = nfa.build(expr, 0, length)?;
        Some(nfa)
    }

    fn push(&mut self, state: State) -> Option<usize> {
        self.states.push(state);
        (self.states.len() <= MOST_STATES).then_some(self.states.len() - 1)
    }

    /// The entry of states that match `expr` and go on to `next`.
    fn build(&mut self, expr: &Expr, next: usize, length: usize) -> Option<usize> {
        match expr {
            Expr::One(set) => self.push(State::One(*set, next)),
            Expr::Look(look) => self.push(State::Look(*look, next)),
            Expr::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.build(part, next, length))
            }
            Expr::Either(parts) => {
                let entries =
                    parts.iter().map(|part| self.build(part, next, length)).collect::<Option<_>>()?;
                self.push(State::Split(entries))
            }
            Expr::Repeat { sub, min, max } => {
                let (min, max) = Expr::rounds(*min, *max, length);
                let mut entry = next;
                match max {
                    None => {
                        entry = self.push(State::Split(Vec::new()))?;
                        let body = self.build(sub, entry, length)?;
                        self.states[entry] = State::Split(vec![body, next]);
                    }
                    Some(max) => {
                        for _ in min..max {
                            let body = self.build(sub, entry, length)?;
                            entry = self.push(State::Split(vec![body, next]))?;
                        }
                    }
                }
                (0..min).try_fold(entry, |next, _| self.build(sub, next, length))
            }
        }
    }
}

/// A set of states that take a symbol, sorted.
type States = Box<[u32]>;

/// Where a symbol leads.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Matched,
    Set(usize),
}

struct Walk<'t> {
    nfa: Nfa,
    text: &'t Text,
    work: usize,
    ids: HashMap<States, usize>,
    sets: Vec<States>,
    /// For each set and symbol where it leads inside the text, once known.
    steps: Vec<Option<Vec<Next>>>,
}

impl Walk<'_> {
    /// How a random text of one length fares.
    fn run(&mut self, texts: &Length) -> Option<Chance> {
        let length = texts.allowed.len();
        let first = match self.close(&[], true, length == 0)? {
            Next::Matched => {
                let positions = (0..length).map(|position| self.text.chances(texts, position));
                let all = |chances: Vec<f64>| chances.iter().sum::<f64>();
                let hit = if self.text.is_restricted() { positions.map(all).product() } else { 1.0 };
                return Some(Chance { hit, miss: 0.0 });
            }
            Next::Set(id) => id,
        };
        let mut hit = 0.0;
        let mut now = vec![(first, 1.0)];
        for position in 0..length {
            let allowed = texts.allowed[position];
            let shares = self.text.chances(texts, position);
            if self.text.is_restricted() {
                // What has matched must still hold what was asked of this place.
                hit *= shares.iter().sum::<f64>();
            }
            let at_end = position + 1 == length;
            let mut after: Vec<f64> = Vec::new();
            for (id, chance) in now {
                let steps = self.steps(id, at_end)?;
                for (symbol, step) in
                    steps.iter().enumerate().filter(|(symbol, _)| allowed >> symbol & 1 == 1)
                {
                    debug_assert!(symbol < 64);
                    match *step {
                        Next::Matched => hit += chance * shares[symbol],
                        Next::Set(id) => {
                            if after.len() <= id {
                                after.resize(id + 1, 0.0);
                            }
                            after[id] += chance * shares[symbol];
                        }
                    }
                }
            }
            now = after.into_iter().enumerate().filter(|(_, chance)| *chance > 0.0).collect();
        }
        Some(Chance { hit, miss: now.iter().map(|(_, chance)| chance).sum() })
    }

    /// Where each symbol leads from this set.
    fn steps(&mut self, id: usize, at_end: bool) -> Option<Vec<Next>> {
        if let (Some(steps), false) = (&self.steps[id], at_end) {
            return Some(steps.clone());
        }
        let from = self.sets[id].clone();
        let mut steps = Vec::with_capacity(self.text.character_count());
        for symbol in 0..self.text.character_count() {
            let reached: Vec<usize> = from
                .iter()
                .filter_map(|&state| match self.nfa.states[state as usize] {
                    State::One(set, next) if set >> symbol & 1 == 1 => Some(next),
                    _ => None,
                })
                .collect();
            self.work = self.work.checked_sub(from.len())?;
            steps.push(self.close(&reached, false, at_end)?);
        }
        if !at_end {
            self.steps[id] = Some(steps.clone());
        }
        Some(steps)
    }

    /// The set reached from these states, and from the start of the expression, without taking a symbol.
    fn close(&mut self, reached: &[usize], at_start: bool, at_end: bool) -> Option<Next> {
        let mut seen = vec![0u64; self.nfa.states.len().div_ceil(64)];
        let mut open = vec![self.nfa.start];
        open.extend_from_slice(reached);
        let mut set = Vec::new();
        while let Some(state) = open.pop() {
            let (word, bit) = (state / 64, 1 << (state % 64));
            if seen[word] & bit != 0 {
                continue;
            }
            seen[word] |= bit;
            self.work = self.work.checked_sub(1)?;
            match &self.nfa.states[state] {
                State::Match => return Some(Next::Matched),
                State::One(..) => set.push(state as u32),
                State::Look(look, next) if look.holds(at_start, at_end) => open.push(*next),
                State::Look(..) => {}
                State::Split(entries) => open.extend_from_slice(entries),
            }
        }
        set.sort_unstable();
        let set = set.into_boxed_slice();
        if let Some(&id) = self.ids.get(&set) {
            return Some(Next::Set(id));
        }
        let id = self.sets.len();
        self.sets.push(set.clone());
        self.steps.push(None);
        self.ids.insert(set, id);
        (id < MOST_SETS).then_some(Next::Set(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npub() -> Text {
        Text::new(warpsmith_chain::find("npub").unwrap(), &crate::Options::default())
    }

    fn repeat(sub: Expr, min: usize, max: Option<usize>) -> Expr {
        Expr::Repeat { sub: Box::new(sub), min, max }
    }

    #[test]
    fn one_symbol_somewhere_is_the_complement_of_nowhere() {
        let text = npub();
        // q: 57 positions of 32 symbols and one of two.
        let chance = chance(&Expr::One(1), &text).unwrap();
        let miss = (31.0f64 / 32.0).powi(57) / 2.0;
        assert!((chance.miss - miss).abs() < 1e-12 && (chance.hit - (1.0 - miss)).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_happen_has_chance_zero_and_what_must_happen_has_miss_zero() {
        let text = npub();
        let any = Expr::One(text.any);
        let chance = |expr: &Expr| chance(expr, &text).unwrap();
        assert_eq!(chance(&Expr::One(0)).hit, 0.0);
        assert_eq!(chance(&repeat(any.clone(), 59, None)).hit, 0.0);
        assert_eq!(chance(&repeat(any.clone(), 58, None)).miss, 0.0);
        assert_eq!(chance(&Expr::Concat(vec![])).miss, 0.0);
        let whole = vec![Expr::Look(Look::Start), repeat(any.clone(), 57, Some(57)), Expr::Look(Look::End)];
        assert_eq!(chance(&Expr::Concat(whole)).hit, 0.0);
        // A 'p' never stands at the 52nd position.
        let at_52 = vec![Expr::Look(Look::Start), repeat(any, 51, Some(51)), Expr::One(2)];
        assert_eq!(chance(&Expr::Concat(at_52)).hit, 0.0);
    }

    #[test]
    fn rounds_without_symbols_do_not_change_the_meaning_of_large_bounds() {
        let text = npub();
        let maybe = Expr::Either(vec![Expr::Look(Look::Start), Expr::One(1)]);
        let small = chance(&repeat(maybe.clone(), 3, Some(1000)), &text).unwrap();
        assert_eq!(small.miss, 0.0);
        let large = chance(&repeat(maybe, 1000, None), &text).unwrap();
        assert_eq!(large.miss, 0.0);
    }
}
