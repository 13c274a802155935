package report

import (
	"fmt"
	"html/template"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// addScatters adds one picture per pair of figures that are set against each
// other.
func (shown *pagePart) addScatters(p part, plots []Plot) error {
	for _, pl := range plots {
		picture, err := scatterPlot(p, pl)
		if err != nil {
			return err
		}
		if picture != "" {
			shown.Scatters = append(shown.Scatters, pageFigure{
				Caption: pl.Title, Hint: "one point per row, vertical scale logarithmic", Picture: template.HTML(picture),
			})
		}
	}
	return nil
}

// scatterPlot draws a labelled point for each row that has both figures; "" when
// fewer than two have them.
func scatterPlot(p part, pl Plot) (string, error) {
	var s scatter
	lowX, highX, lowY, highY := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0
	for _, row := range p.rows {
		x, y := p.spread(row, pl.X), p.spread(row, pl.Y)
		if x.seeds == 0 || y.seeds == 0 || y.median <= 0 {
			continue
		}
		s.names = append(s.names, shorten(row, 24))
		s.colors = append(s.colors, rowColor(p.colors[row]))
		s.xs, s.ys = append(s.xs, x.median), append(s.ys, y.median)
		lowX, highX = min(lowX, x.median), max(highX, x.median)
		lowY, highY = min(lowY, y.median), max(highY, y.median)
	}
	if len(s.names) < 2 {
		return "", nil
	}
	plot := newPlot()
	plot.Add(s)
	// No range may be empty, and no point may lie on the edge.
	margin := max((highX-lowX)*0.08, math.Abs(highX)*0.01, 1e-9)
	plot.X.Min, plot.X.Max = lowX-margin, highX+margin
	factor := max(math.Pow(highY/lowY, 0.12), 1.15)
	plot.Y.Scale, plot.Y.Tick.Marker = plotLog{}, fewDecades{}
	plot.Y.Min, plot.Y.Max = lowY/factor, highY*factor
	plot.X.Label.Text, plot.Y.Label.Text = p.axisLabel(pl.X), p.axisLabel(pl.Y)
	return svg(plot, 640, 330, pl.Title)
}

// axisLabel names a figure, its unit and which way is better.
func (p part) axisLabel(name string) string {
	for _, m := range p.metrics {
		if m.Name != name {
			continue
		}
		label := m.Label
		if unit := unitOf(name); unit != "" {
			label += ", " + unit
		}
		if hint := betterHint(m); hint != "" {
			label += " (" + hint + ")"
		}
		return label
	}
	return plainLabel(name)
}

// scatter draws points and their names.
type scatter struct {
	names  []string
	colors []color.Color
	xs, ys []float64
}

// pointRadius is the size of a point; labelGap is how far its name keeps away.
const (
	pointRadius = vg.Length(4)
	labelGap    = vg.Length(4)
)

// Plot implements plot.Plotter.
func (s scatter) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := plotText(10, draw.XLeft, draw.XLeft)
	style.YAlign = draw.YBottom
	var points, sizes []vg.Point
	for i, name := range s.names {
		points = append(points, vg.Point{X: toX(s.xs[i]), Y: toY(s.ys[i])})
		sizes = append(sizes, vg.Point{X: style.Width(name), Y: style.Height(name)})
	}
	for i, at := range points {
		c.SetColor(s.colors[i])
		var path vg.Path
		path.Move(vg.Point{X: at.X + pointRadius, Y: at.Y})
		path.Arc(at, pointRadius, 0, 2*math.Pi)
		path.Close()
		c.Fill(path)
	}
	for i, corner := range placeLabels(points, sizes, c.Rectangle) {
		c.FillText(style, corner, s.names[i])
	}
}

// placeLabels returns the lower left corner of each point's label. Each takes
// the first of some places around its point where it covers no point and no
// label that has its place already, else the one where it covers least.
func placeLabels(points, sizes []vg.Point, area vg.Rectangle) []vg.Point {
	var taken []vg.Rectangle
	for _, p := range points {
		corner := vg.Point{X: pointRadius, Y: pointRadius}
		taken = append(taken, vg.Rectangle{Min: p.Sub(corner), Max: p.Add(corner)})
	}
	var corners []vg.Point
	for i, p := range points {
		var best vg.Rectangle
		least := vg.Length(math.Inf(1))
		for _, box := range labelPlaces(p, sizes[i]) {
			covered := outside(box, area)
			for _, other := range taken {
				covered += overlap(box, other)
			}
			if covered < least {
				best, least = box, covered
			}
		}
		taken = append(taken, best)
		corners = append(corners, best.Min)
	}
	return corners
}

// labelPlaces are the places where a label may stand, the best first.
func labelPlaces(p, size vg.Point) []vg.Rectangle {
	const away = pointRadius + labelGap
	right, left, middle := p.X+away, p.X-away-size.X, p.X-size.X/2
	corners := []vg.Point{{X: right, Y: p.Y - size.Y/2}, {X: left, Y: p.Y - size.Y/2}}
	for ring := range 3 {
		up := p.Y + away + vg.Length(ring)*size.Y
		down := p.Y - away - vg.Length(ring+1)*size.Y
		corners = append(corners, vg.Point{X: middle, Y: up}, vg.Point{X: middle, Y: down})
		for _, x := range []vg.Length{right, left} {
			corners = append(corners, vg.Point{X: x, Y: up - labelGap}, vg.Point{X: x, Y: down + labelGap})
		}
	}
	var places []vg.Rectangle
	for _, c := range corners {
		places = append(places, vg.Rectangle{Min: c, Max: c.Add(size)})
	}
	return places
}

// overlap is the area that two rectangles share.
func overlap(a, b vg.Rectangle) vg.Length {
	width := min(a.Max.X, b.Max.X) - max(a.Min.X, b.Min.X)
	height := min(a.Max.Y, b.Max.Y) - max(a.Min.Y, b.Min.Y)
	if width <= 0 || height <= 0 {
		return 0
	}
	return width * height
}

// outside is the part of a box that lies outside of area. It counts double: it
// could not be read.
func outside(box, area vg.Rectangle) vg.Length {
	whole := (box.Max.X - box.Min.X) * (box.Max.Y - box.Min.Y)
	return 2 * (whole - overlap(box, area))
}

// fewDecades marks a logarithmic scale on which there may be no power of ten.
type fewDecades struct{}

// Ticks implements plot.Ticker.
func (fewDecades) Ticks(low, high float64) []plot.Tick {
	ticks := decades{}.Ticks(low, high)
	for i := range ticks {
		text := fmt.Sprintf("%g", ticks[i].Value)
		if first := strings.TrimLeft(text, "0."); high < 300*low && (first[0] == '2' || first[0] == '5') {
			ticks[i].Label = text
		}
	}
	return ticks
}
