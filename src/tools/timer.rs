//! Granularity and overhead of the clock behind `gasnett_ticks_now`. A tick is a nanosecond of the
//! monotonic clock. Called by `capi::tools`; each is measured once.

use std::sync::OnceLock;
use sys::clock::now_ns;

/// Smallest difference between two readings, in microseconds; more than 0.
pub fn granularity_us() -> f64 {
    static MEASURED: OnceLock<f64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let mut least = u64::MAX;
        for _ in 0..1000 {
            let start = now_ns();
            let mut next = now_ns();
            while next == start {
                next = now_ns();
            }
            least = least.min(next - start);
        }
        least as f64 / 1000.0
    })
}

/// Mean time of one reading, in microseconds; more than 0.
pub fn overhead_us() -> f64 {
    static MEASURED: OnceLock<f64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        const READINGS: u32 = 1000;
        let start = now_ns();
        for _ in 1..READINGS {
            std::hint::black_box(now_ns());
        }
        (now_ns() - start).max(1) as f64 / f64::from(READINGS) / 1000.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_nothing() {
        assert!(granularity_us() > 0.0);
        assert!(overhead_us() > 0.0);
    }
}
