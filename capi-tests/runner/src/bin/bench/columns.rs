//! The output of the programs of `capi-tests/bench`: `# name, N processes`, `# Size  Unit`, and
//! lines with a size and a value.

use std::collections::BTreeMap;

/// The key of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    /// The measurement.
    pub(crate) name: String,
    /// Ranks of the job.
    pub(crate) processes: u32,
    /// Bytes, or another count of the program; 0 if none.
    pub(crate) size: u64,
}

/// The values of one round of one system, and the unit of each measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFigures {
    pub(crate) values: BTreeMap<RowKey, f64>,
    pub(crate) units: BTreeMap<String, String>,
}

impl RowFigures {
    /// Adds the output of a program.
    pub(crate) fn read(&mut self, output: &str) -> Result<(), String> {
        let mut head: Option<(String, u32)> = None;
        let mut rows = 0;
        for line in output.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["#", "Size", unit @ ..] => {
                    let (name, _) =
                        head.as_ref().ok_or(format!("a unit without a name: {line:?}"))?;
                    self.units.insert(name.clone(), unit.join(" "));
                }
                ["#", name, processes, "processes"] => {
                    let processes = processes
                        .parse()
                        .map_err(|_| format!("no number of processes: {line:?}"))?;
                    head = Some((name.trim_end_matches(',').to_string(), processes));
                }
                [size, value] if head.is_some() => {
                    let (Ok(size), Ok(value)) = (size.parse(), value.parse()) else { continue };
                    let (name, processes) = head.clone().unwrap_or_default();
                    self.values.insert(RowKey { name, processes, size }, value);
                    rows += 1;
                }
                _ => {}
            }
        }
        if rows == 0 { Err(format!("no figures in what was printed:\n{output}")) } else { Ok(()) }
    }

    pub(crate) fn put(&mut self, name: &str, processes: u32, size: u64, value: f64) {
        self.values.insert(RowKey { name: name.to_string(), processes, size }, value);
    }

    /// Adds the values of a later measurement.
    pub(crate) fn add(&mut self, later: RowFigures) {
        self.values.extend(later.values);
        self.units.extend(later.units);
    }

    pub(crate) fn get(&self, name: &str, processes: u32, size: u64) -> Option<f64> {
        self.values.get(&RowKey { name: name.to_string(), processes, size }).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read() {
        let mut f = RowFigures::default();
        f.read("# put, 2 processes\n# Size     Latency (us)\n8     0.25\n16   0.5\n# line_trip, 1 processes\n# Size  us\n0 3\n")
            .unwrap();
        assert_eq!(f.get("put", 2, 16), Some(0.5));
        assert_eq!(f.get("put", 1, 16), None);
        assert_eq!(f.get("line_trip", 1, 0), Some(3.0));
        assert_eq!(f.units["put"], "Latency (us)");
        assert!(f.read("nothing\n").is_err());
    }
}
