//! A drawing in SVG: frames with axes, step curves, marks and text.
//!
//! Called by `credits` and `firehose`. Lengths are pixels from the upper left corner of the
//! drawing.

use std::fmt::Write;

/// Colours that colour-blind readers can distinguish (Okabe and Ito 2008).
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// The colour of curves that need not be distinguished.
pub(crate) const GREY: &str = "#b0b0b0";

/// A drawing in progress.
pub(crate) struct Svg {
    body: String,
    width: f64,
}

/// A frame in a drawing, with the values at its edges.
#[derive(Clone, Copy)]
pub(crate) struct PlotFrame {
    /// Left edge.
    pub(crate) x: f64,
    /// Upper edge.
    pub(crate) y: f64,
    /// Pixels from the left to the right edge.
    pub(crate) width: f64,
    /// Pixels from the upper to the lower edge.
    pub(crate) height: f64,
    /// The horizontal axis goes from 0 to this value, which is positive.
    pub(crate) most_x: f64,
    /// The vertical axis goes from 0 to this value, which is positive.
    pub(crate) most_y: f64,
}

impl PlotFrame {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.x + x / self.most_x * self.width,
            self.y + self.height - y / self.most_y * self.height,
        )
    }
}

/// Distance of the marks of an axis from 0 to `most`. It is the smallest of 1, 2 or 5 times a
/// power of ten that makes at most this many marks.
fn step(most: f64, marks: f64) -> f64 {
    let power = 10f64.powf((most / marks).log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|f| f * power)
        .find(|s| most / s <= marks)
        .unwrap_or(10.0 * power)
}

impl Svg {
    /// An empty drawing of this width.
    pub(crate) fn new(width: f64) -> Svg {
        Svg { body: String::new(), width }
    }

    /// Text that begins at a point.
    pub(crate) fn text(&mut self, x: f64, y: f64, size: u32, colour: &str, text: &str) {
        self.write(x, y, size, colour, "start", text);
    }

    fn write(&mut self, x: f64, y: f64, size: u32, colour: &str, anchor: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, width: f64) {
        let _ = writeln!(
            self.body,
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        );
    }

    /// The frame, its title and its axes.
    pub(crate) fn frame(&mut self, f: &PlotFrame, title: &str, unit_x: &str) {
        self.text(f.x, f.y - 6.0, 12, "#000000", title);
        // A mark for every 60 pixels from left to right, and for every 20 from below.
        let (dx, dy) = (step(f.most_x, f.width / 60.0), step(f.most_y, f.height / 20.0));
        for i in 0..=(f.most_y / dy) as u32 {
            let value = f64::from(i) * dy;
            let (x, y) = f.at(0.0, value);
            self.line((x, y), (x + f.width, y), "#e8e8e8", 1.0);
            self.write(x - 5.0, y + 4.0, 10, "#000000", "end", &shown(value, dy));
        }
        for i in 0..=(f.most_x / dx) as u32 {
            let value = f64::from(i) * dx;
            let (x, y) = f.at(value, 0.0);
            self.line((x, y), (x, y + 4.0), "#000000", 1.0);
            self.write(x, y + 15.0, 10, "#000000", "middle", &shown(value, dx));
        }
        let (x, y) = f.at(f.most_x, 0.0);
        self.write(x, y + 27.0, 10, "#000000", "end", unit_x);
        self.line(f.at(0.0, 0.0), f.at(f.most_x, 0.0), "#000000", 1.0);
        self.line(f.at(0.0, 0.0), f.at(0.0, f.most_y), "#000000", 1.0);
    }

    /// A curve that keeps each value until the next one, and the last one to the right edge.
    pub(crate) fn steps(
        &mut self,
        f: &PlotFrame,
        points: &[(f64, f64)],
        colour: &str,
        width: f64,
    ) {
        let Some(&(x, y)) = points.first() else { return };
        let (x, mut last) = f.at(x, y);
        let mut d = format!("M{x:.1} {last:.1}");
        for &(x, y) in &points[1..] {
            let (x, y) = f.at(x, y);
            // Steps below a tenth of a pixel are invisible.
            if (y - last).abs() >= 0.1 {
                let _ = write!(d, "H{x:.1}V{y:.1}");
                last = y;
            }
        }
        let _ = write!(d, "H{:.1}", f.x + f.width);
        let _ = writeln!(
            self.body,
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        );
    }

    /// Short marks along the upper edge, one per value; marks on the same pixel become one.
    pub(crate) fn marks(&mut self, f: &PlotFrame, values: &[f64], colour: &str) {
        let mut last = f64::MIN;
        for &value in values {
            let (x, _) = f.at(value, 0.0);
            if x - last >= 1.0 {
                self.line((x, f.y), (x, f.y + 6.0), colour, 1.0);
                last = x;
            }
        }
    }

    /// The text of the file; `height` is the height of the drawing.
    pub(crate) fn finish(self, height: f64) -> String {
        let width = self.width;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// The text of a value on an axis whose marks have this distance.
fn shown(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_axes() {
        assert_eq!(
            [1.0, 8.0, 10.0, 99.0, 0.013].map(|most| step(most, 5.0)),
            [0.2, 2.0, 2.0, 20.0, 0.005]
        );
        assert_eq!(
            (shown(4.0, 2.0), shown(0.4, 0.2), shown(0.01, 0.002)),
            ("4".into(), "0.4".into(), "0.010".into())
        );
    }

    #[test]
    fn curves_keep_their_values_until_the_next() {
        let mut svg = Svg::new(100.0);
        let f =
            PlotFrame { x: 0.0, y: 0.0, width: 100.0, height: 10.0, most_x: 10.0, most_y: 10.0 };
        svg.steps(&f, &[(0.0, 0.0), (5.0, 10.0), (6.0, 10.0), (7.0, 5.0)], GREY, 1.0);
        let text = svg.finish(10.0);
        assert!(text.contains("d=\"M0.0 10.0H50.0V0.0H70.0V5.0H100.0\""), "{text}");
    }
}
