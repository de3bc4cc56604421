//! Lanes that are put elsewhere, as host C under sanitizers: those that are named, and no others.

use crate::support::{HostProgram, Random};
use warpsmith_kernel::abi;
use warpsmith_kernel::moves::{WORDS, join};

#[test]
fn lanes_that_are_moved_are_where_they_were_put_and_the_others_stay() {
    let host = HostProgram::build(&join().text, include_str!("host/moves.c"));
    let mut random = Random(31);
    for (lanes, moved) in [(1u32, vec![0u32]), (8, vec![7, 0]), (64, (0..64).rev().step_by(3).collect())] {
        let before: Vec<u32> = (0..abi::centres_words(lanes)).map(|_| random.next()).collect();
        let mut after = before.clone();
        let mut request = vec![lanes, moved.len() as u32];
        request.extend(&before);
        for lane in moved {
            request.push(lane);
            for word in 0..WORDS {
                let value = random.next();
                request.push(value);
                after[word * lanes as usize + lane as usize] = value;
            }
        }
        assert_eq!(host.run(&request), after, "{lanes} lanes");
    }
}
