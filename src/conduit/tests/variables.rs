//! The variables of the conduit: both ends of their ranges, and the values beyond them.
//!
//! Run in processes of their own, since the environment is read once.

use super::{World, emulation, run_alone, traffic};
use crate::conduit::network::NetworkKind;
use crate::conduit::{Config, RegisteredOnDemand};

/// Every variable of the conduit at both ends of its range. There the job works, and a value
/// beyond them is refused with a line that names the variable and the range.
#[test]
fn variables_at_their_extremes() {
    use crate::env::all;
    let ours =
        |name: &str| name.starts_with("GASNET_PORTAL_") || name == "GASNET_PACKEDLONG_LIMIT";
    let run = |settings: &[(&str, &str)]| {
        run_alone("conduit::tests::variables::from_environment", settings)
    };
    let works = |settings: &[(&str, &str)]| {
        let (code, text) = run(settings);
        assert_eq!(code, Some(0), "{settings:?}: {text}");
    };
    let refused = |settings: &[(&str, &str)], words: &[&str]| {
        let (code, text) = run(settings);
        assert!(code == Some(1) && words.iter().all(|w| text.contains(w)), "{settings:?}: {text}");
    };
    // A terabyte is not to be had everywhere, and all that one process may hold must be within
    // what it may be lent.
    let unlike = ["GASNET_PORTAL_AMRECV_SPACE", "GASNET_PORTAL_CRED_PER_NODE"];
    for v in all().filter(|v| ours(v.name())) {
        let (lo, hi) = v.bounds().expect("variables of the conduit have bounds");
        let (low, high) = (lo.to_string(), hi.to_string());
        works(&[(v.name(), &low)]);
        if hi != lo && !unlike.contains(&v.name()) {
            works(&[(v.name(), &high)]);
        }
        // Those of a yes or no have no range.
        let values = v.values();
        let range = values.split_once(", ").map_or("", |(_, range)| range);
        let words: Vec<&str> = range.split(" to ").chain([v.name()]).collect();
        refused(&[(v.name(), &(hi + 1).to_string())], &words);
        refused(&[(v.name(), &(lo - 1).to_string())], &[v.name()]);
    }
    let all_lent =
        [("GASNET_PORTAL_CRED_PER_NODE", "65535"), ("GASNET_PORTAL_MAX_CRED_PER_NODE", "65535")];
    works(&all_lent);
    refused(&all_lent[..1], &["GASNET_PORTAL_CRED_PER_NODE=65535", "8 to 400"]);
    works(&[all_lent[0], ("GASNET_PORTAL_DYNAMIC_CREDITS", "0")]);
    refused(
        &[
            ("GASNET_PORTAL_CRED_PER_NODE", "5000"),
            all_lent[1],
            ("GASNET_PORTAL_AMRECV_SPACE", "4M"),
        ],
        &["GASNET_PORTAL_AMRECV_SPACE to at least 6MB"],
    );
    works(&[("GASNET_PORTAL_AMRECV_SPACE", "16M"), ("GASNET_PORTAL_BANKED_CREDITS", "0")]);
}

#[test]
#[ignore = "reads the environment; run by variables_at_their_extremes"]
fn from_environment() {
    crate::env::check_all();
    let mut config = Config::from_env(2, 1);
    config.registers = NetworkKind::Emulation.registers(RegisteredOnDemand::LocalSides).is_some();
    let world = World::open(emulation(2, &config), &config);
    traffic::some_of_each(&world);
}
