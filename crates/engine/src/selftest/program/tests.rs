//! What is proved before a search is what searches, wherever the limits between programs lie.

use std::sync::Mutex;

use warpsmith_chain::Recipe;

use super::*;
use crate::cpu::Cpu;
use crate::gpu::Gpu;
use crate::samples::samples;
use crate::simd;
use crate::worker::{Fault, Runner, Worker};

/// Chooses programs as a card does, has the processor run them, and remembers which it was asked to run.
struct Spy {
    cpu: Cpu,
    card: Option<Gpu>,
    run: Mutex<Vec<Program>>,
}

impl Backend for Spy {
    fn id(&self) -> String {
        "spy".to_owned()
    }
    fn describe(&self) -> String {
        self.cpu.describe()
    }
    fn runner(&self) -> Runner {
        self.cpu.runner()
    }
    fn workers(&self) -> usize {
        1
    }
    fn max_false(&self, recipe: &Recipe) -> f64 {
        self.cpu.max_false(recipe)
    }
    fn program(&self, search: &Search<'_>) -> Program {
        match &self.card {
            Some(card) => card.program(search),
            None => self.cpu.program(search),
        }
    }
    fn worker<'a>(&'a self, search: &Search<'_>) -> std::result::Result<Box<dyn Worker + 'a>, Fault> {
        self.run.lock().expect("not poisoned").push(self.program(search));
        self.cpu.worker(search)
    }
}

/// The programs a device runs before a search by this filter, and the one that is to search.
fn proved(spy: &Spy, subject: Subject<'_>, filter: &Filter) -> (Vec<Program>, Program) {
    spy.run.lock().expect("not poisoned").clear();
    let recipe = subject.recipe();
    let search = Search::new(&recipe, filter);
    prove_program(spy, subject, &search).expect("the processor computes rightly");
    (spy.run.lock().expect("not poisoned").clone(), spy.program(&search))
}

#[test]
fn the_program_that_searches_is_the_one_that_is_proved() {
    let cpu = || Cpu::new(simd::detect(), 1);
    let devices = [
        Spy { cpu: cpu(), card: None, run: Mutex::default() },
        Spy { cpu: cpu(), card: Some(crate::gpu::tests::described()), run: Mutex::default() },
    ];
    for sample in samples().into_iter().filter(|sample| ["npub", "eth", "create2"].contains(&sample.name)) {
        for spy in &devices {
            let mut searching = std::collections::HashSet::new();
            // On both sides of every limit there is.
            for size in [0, 1, 2, 3, 4, 5, 16, 17, 128, 129, 1024, 1025, 2001, 20_000, 20_001] {
                for terms in [Vec::new(), vec![term(&[1, 2, 3, 4])]] {
                    let filter = Filter { top: ranges(size).expect("random"), terms, score: None };
                    let (proved, program) = proved(spy, sample.subject, &filter);
                    assert!(
                        proved.contains(&program),
                        "{}: {size} ranges are searched by {program:?}, but {proved:?} were proved",
                        sample.name
                    );
                    searching.insert(program);
                }
            }
            let least = if spy.card.is_some() { 6 } else { 4 };
            assert!(searching.len() >= least, "{}: {searching:?}", sample.name);
        }
    }
}

/// Wide ranges fill the tables of the processor as many narrow ones do.
#[test]
fn wide_ranges_are_proved_by_the_program_they_select() {
    let spy = Spy { cpu: Cpu::new(simd::detect(), 1), card: None, run: Mutex::default() };
    let npub = samples().into_iter().find(|sample| sample.name == "npub").expect("npub is a sample");
    let top = (0..6u64).map(|i| around(i << 60, 6)).collect();
    let (proved, program) = proved(&spy, npub.subject, &Filter { top, ..Filter::default() });
    assert_eq!(program, Program("dense tables".to_owned()));
    assert!(proved.contains(&program), "{proved:?}");
}

#[test]
fn ranges_are_as_many_as_asked_for_and_apart() {
    for size in [0, 1, 5, 3000] {
        let ranges = with(vec![around(u64::MAX, 2)], size).expect("random");
        assert_eq!(ranges.len(), size.max(1));
        assert!(ranges.windows(2).all(|two| two[0].last < two[1].first - 1));
        assert_eq!(ranges[ranges.len() - 1], around(u64::MAX, 2));
    }
}
