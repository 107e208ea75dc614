use super::*;
use crate::axis;
use crate::plan::{Options, Plan, Settings, resolve};

/// A point of messages at a set rate with a load.
fn loaded(load: Load, loaders: u32) -> PointSpec {
    let settings = Settings::default()
        .axis(axis::LOADERS.value(loaders))
        .axis(axis::LOAD.value(load))
        .axis(axis::LOAD_BYTES.value(4096));
    let plan = Plan::new("load", "Load").experiment("e", crate::point::Pattern::OPEN_LOOP, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0)
}

/// The parts of each rank, and its peers in them.
fn parts(spec: &PointSpec) -> Vec<Vec<(Part, Vec<u32>)>> {
    let topology = spec.topology();
    let of =
        |rank| topology.parts_of(rank).map(|part| (part.part, part.links.partners(rank).into())).collect();
    (0..topology.ranks).map(of).collect()
}

/// The part of the plan's messages.
const MAIN: Part = Part::MAIN;

#[test]
fn what_nobody_loads_has_one_part() {
    let spec = loaded(Load::Incast, 0);
    assert_eq!(parts(&spec), [vec![(MAIN, vec![1])], vec![(MAIN, vec![0])]]);
    assert_eq!(spec.topology().parts[0].message, spec.message);
}

#[test]
fn an_incast_goes_to_the_receiver_and_an_outcast_comes_from_the_sender() {
    let loader = |end| vec![(LOAD, vec![end]), (CONTROL, vec![0])];
    let incast = [
        vec![(MAIN, vec![1]), (CONTROL, vec![2, 3])],
        vec![(MAIN, vec![0]), (LOAD, vec![2, 3])],
        loader(1),
        loader(1),
    ];
    assert_eq!(parts(&loaded(Load::Incast, 2)), incast);
    let outcast = [
        vec![(MAIN, vec![1]), (LOAD, vec![2, 3]), (CONTROL, vec![2, 3])],
        vec![(MAIN, vec![0])],
        loader(0),
        loader(0),
    ];
    assert_eq!(parts(&loaded(Load::Outcast, 2)), outcast);
}

#[test]
fn a_load_beside_has_a_rank_of_its_own_for_each_loader() {
    let beside = [
        vec![(MAIN, vec![1]), (CONTROL, vec![2, 4])],
        vec![(MAIN, vec![0])],
        vec![(LOAD, vec![3]), (CONTROL, vec![0])],
        vec![(LOAD, vec![2])],
        vec![(LOAD, vec![5]), (CONTROL, vec![0])],
        vec![(LOAD, vec![4])],
    ];
    let spec = loaded(Load::Beside, 2);
    assert_eq!(parts(&spec), beside);
    assert_eq!(
        (0..6).map(|rank| spec.topology().begins(rank)).collect::<Vec<_>>(),
        [true, false, true, false, true, false]
    );
}

#[test]
fn who_talks_is_talked_to() {
    for load in [Load::Beside, Load::Incast, Load::Outcast] {
        let spec = loaded(load, 5);
        for rank in 0..spec.ranks() {
            for part in spec.topology().parts {
                for &other in part.links.partners(rank) {
                    assert!(
                        part.links.partners(other).contains(&rank),
                        "{load:?} {:?} {rank} {other}",
                        part.part
                    );
                }
            }
        }
    }
}

#[test]
fn a_load_has_its_own_size_and_operation_whatever_the_plan_says_of_the_messages() {
    let mut spec = loaded(Load::Outcast, 1);
    (spec.message.inline, spec.message.sge) = (true, 3);
    let topology = spec.topology();
    let of = |rank| topology.parts_of(rank).find(|part| part.part == LOAD).map(|part| &part.message);
    let load = of(2).unwrap();
    assert_eq!((load.operation, load.size_bytes, load.inline, load.sge), (Operation::Read, 4096, false, 1));
    assert_eq!(of(1), None);
}
