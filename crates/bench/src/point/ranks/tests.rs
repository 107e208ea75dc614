use super::*;
use crate::axis;
use crate::plan::{Options, Plan, Settings, resolve};

/// A point of messages at a set rate under a load.
fn loaded(load: Load, loaders: u32) -> PointSpec {
    let settings = Settings::default()
        .axis(axis::LOADERS.value(loaders))
        .axis(axis::LOAD.value(load))
        .axis(axis::LOAD_BYTES.value(4096));
    let plan = Plan::new("load", "Load").experiment("e", Pattern::OpenLoop, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0)
}

/// The parts of each rank, and its partners in them.
fn parts(spec: &PointSpec) -> Vec<Vec<(Part, Vec<u32>)>> {
    let parts = spec.parts();
    let of = |rank| {
        let own = parts.iter().filter(|part| part.is_for(rank));
        own.map(|part| (part.part, part.partners(rank))).collect()
    };
    (0..spec.ranks()).map(of).collect()
}

#[test]
fn what_nobody_loads_has_one_part() {
    let spec = loaded(Load::Incast, 0);
    assert_eq!(parts(&spec), [vec![(Part::Main, vec![1])], vec![(Part::Main, vec![0])]]);
    assert_eq!(spec.parts(), [spec]);
}

#[test]
fn an_incast_goes_to_the_receiver_and_an_outcast_comes_from_the_sender() {
    use Part::{Control, Load as Loads, Main};
    let loader = |end| vec![(Loads, vec![end]), (Control, vec![0])];
    let incast = [
        vec![(Main, vec![1]), (Control, vec![2, 3])],
        vec![(Main, vec![0]), (Loads, vec![2, 3])],
        loader(1),
        loader(1),
    ];
    assert_eq!(parts(&loaded(Load::Incast, 2)), incast);
    let outcast = [
        vec![(Main, vec![1]), (Loads, vec![2, 3]), (Control, vec![2, 3])],
        vec![(Main, vec![0])],
        loader(0),
        loader(0),
    ];
    assert_eq!(parts(&loaded(Load::Outcast, 2)), outcast);
}

#[test]
fn a_load_beside_has_a_rank_of_its_own_for_each_loader() {
    use Part::{Control, Load as Loads, Main};
    let beside = [
        vec![(Main, vec![1]), (Control, vec![2, 4])],
        vec![(Main, vec![0])],
        vec![(Loads, vec![3]), (Control, vec![0])],
        vec![(Loads, vec![2])],
        vec![(Loads, vec![5]), (Control, vec![0])],
        vec![(Loads, vec![4])],
    ];
    let spec = loaded(Load::Beside, 2);
    assert_eq!(parts(&spec), beside);
    assert_eq!(
        (0..6).map(|rank| spec.begins(rank)).collect::<Vec<_>>(),
        [true, false, true, false, true, false]
    );
}

#[test]
fn who_talks_is_talked_to() {
    for load in [Load::Beside, Load::Incast, Load::Outcast] {
        let spec = loaded(load, 5);
        for rank in 0..spec.ranks() {
            for part in spec.parts() {
                for other in part.partners(rank) {
                    assert!(part.partners(other).contains(&rank), "{load:?} {:?} {rank} {other}", part.part);
                }
            }
        }
    }
}

#[test]
fn a_load_has_its_own_size_and_operation_whatever_the_plan_says_of_the_messages() {
    let spec = PointSpec { inline: true, sge: 3, ..loaded(Load::Outcast, 1) };
    let of = |rank| spec.parts().into_iter().find(|part| part.part == Part::Load && part.is_for(rank));
    let load = of(2).unwrap();
    assert_eq!((load.operation, load.size_bytes, load.inline, load.sge), (Operation::Read, 4096, false, 1));
    assert_eq!(of(1), None);
}
