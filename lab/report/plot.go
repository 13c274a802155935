package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A plot's colours are names: the page's style sheet gives them their values,
// so that one picture is right on light and on dark paper. In the drawing each
// is a colour that stands for its name, see svg.
const (
	ink    = 0 // text
	faint  = 1 // axes and grid
	limit  = 2 // promised bounds
	series = 8 // + number of the row
)

// maxSeries is how many rows have a colour of their own.
const maxSeries = 14

func named(n int) color.Color { return color.RGBA{R: 1, G: 2, B: uint8(n + 1), A: 255} }

func rowColor(i int) color.Color { return named(series + i%maxSeries) }

// svg draws p and returns an SVG element without size in pixels, whose colours
// and font come from the page.
func svg(p *plot.Plot, width, height vg.Length, title string) (string, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height), vgsvg.EmbedFonts(false))
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("plot %q: %w", title, err)
	}
	_, text, ok := strings.Cut(b.String(), "<svg")
	if !ok {
		return "", fmt.Errorf("plot %q: no picture was drawn", title)
	}
	text = regexp.MustCompile(`font-family:[^;]*;font-variant:[^;]*;font-weight:[^;]*;font-style:[^;"]*;?`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`#0102([0-9A-F]{2})`).ReplaceAllStringFunc(text, func(code string) string {
		var n int
		fmt.Sscanf(code[5:], "%02X", &n)
		return fmt.Sprintf("var(--plot%d)", n-1)
	})
	text = regexp.MustCompile(` (width|height)="[^"]*pt"`).ReplaceAllString(text, "")
	return `<svg role="img" aria-label="` + escape(title) + `"` + text, nil
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace(text)
}

// newPlot returns an empty plot in the page's style.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Color = named(faint)
		axis.Tick.LineStyle.Color = named(faint)
		axis.Tick.Label.Color = named(ink)
		axis.Label.TextStyle.Color = named(ink)
		axis.Tick.Label.Font = plotFont(9)
		axis.Label.TextStyle.Font = plotFont(9)
	}
	p.Legend.TextStyle.Color = named(ink)
	p.Legend.TextStyle.Font = plotFont(9)
	return p
}

func plotFont(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func plotText(size vg.Length, x, y text.XAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: named(ink), Font: plotFont(size), XAlign: x, YAlign: draw.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}

// bars draws one horizontal bar per row, the range over the seeds as a line,
// and the number behind it. It draws into the data area only.
type bars struct {
	names   []string
	colors  []color.Color
	values  []spread
	texts   []string
	low     float64 // where the bars begin
	high    float64 // the largest value shown
	log     bool
	promise []float64 // values to mark
}

// position maps a value to 0..1 of the room for bars.
func (b bars) position(v float64) float64 {
	if b.high <= b.low {
		return 0
	}
	if b.log {
		return math.Min(1, math.Max(0, math.Log(math.Max(v, b.low)/b.low)/math.Log(b.high/b.low)))
	}
	return math.Min(1, math.Max(0, (v-b.low)/(b.high-b.low)))
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, _ *plot.Plot) {
	const numbers = 112 // room for the numbers, in points
	names := vg.Length(10)
	for _, name := range b.names {
		names = max(names, 10+5.6*vg.Length(len(name)))
	}
	left, right := c.Min.X+names, c.Max.X-numbers
	at := func(v float64) vg.Length { return left + (right-left)*vg.Length(b.position(v)) }
	pitch := (c.Max.Y - c.Min.Y) / vg.Length(len(b.names))
	for _, v := range b.promise {
		style := draw.LineStyle{Color: named(limit), Width: 1, Dashes: []vg.Length{3, 2}}
		c.StrokeLine2(style, at(v), c.Min.Y, at(v), c.Max.Y)
	}
	for i := range b.names {
		y := c.Max.Y - pitch*(vg.Length(i)+0.5)
		c.FillText(plotText(10.5, draw.XRight, 0), vg.Point{X: left - 6, Y: y}, b.names[i])
		end := left
		if s := b.values[i]; s.seeds > 0 {
			end = max(at(s.median), left+1.5)
			half := pitch * 0.32
			c.FillPolygon(b.colors[i], []vg.Point{{X: left, Y: y - half}, {X: end, Y: y - half}, {X: end, Y: y + half}, {X: left, Y: y + half}})
			if s.seeds > 1 && at(s.high)-at(s.low) > 1 {
				c.StrokeLine2(draw.LineStyle{Color: named(ink), Width: 1}, at(s.low), y, at(s.high), y)
				end = max(end, at(s.high))
			}
		}
		c.FillText(plotText(10.5, draw.XLeft, 0), vg.Point{X: end + 5, Y: y}, b.texts[i])
	}
}

// barPlot draws one figure: a bar for each row, on a logarithmic scale where a
// linear one would hide the small ones.
func barPlot(p part, m Metric) (picture string, logarithmic bool, err error) {
	b := bars{}
	smallest := math.Inf(1)
	for _, row := range p.rows {
		s := p.spread(row, m.Name)
		b.names = append(b.names, shorten(row, 14))
		b.colors = append(b.colors, rowColor(p.colors[row]))
		b.values = append(b.values, s)
		b.texts = append(b.texts, barText(p, m, row, s))
		b.high = max(b.high, s.high)
		if s.seeds > 0 && s.median > 0 {
			smallest = min(smallest, s.median)
		}
	}
	for _, bound := range m.Bounds {
		if bound.Against == "" && bound.AtMost > 0 && bound.AtMost <= b.high*1.5 {
			b.promise = append(b.promise, bound.AtMost)
			b.high = max(b.high, bound.AtMost)
		}
	}
	if b.high > 40*smallest {
		b.log, b.low = true, smallest/3
	}
	plot := newPlot()
	plot.HideAxes()
	plot.Add(b)
	picture, err = svg(plot, 370, vg.Length(8+20*len(p.rows)), m.Group+": "+m.Label)
	return picture, b.log, err
}

func barText(p part, m Metric, row string, s spread) string {
	if s.seeds == 0 {
		return "not measured"
	}
	words := withUnit(s.median, m.Name)
	if row != Baseline {
		if r := ratio(s, p.spread(Baseline, m.Name)); r != "" {
			words += "  " + r
		}
	}
	return words
}

// shorten keeps the end of a long name: that is where names differ.
func shorten(name string, length int) string {
	letters := []rune(printable(name))
	if len(letters) <= length {
		return string(letters)
	}
	return "..." + string(letters[len(letters)-length+3:])
}

// distributionPlot draws, for each row, which share of the samples exceeds a
// value: both scales are logarithmic, because the rare late ones matter.
func distributionPlot(p part, name string) (string, error) {
	plot := newPlot()
	least, low, high := 1.0, math.Inf(1), 0.0
	for _, row := range p.rows {
		points := exceeding(p.histogram(row, name))
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return "", fmt.Errorf("plot %q: %w", name, err)
		}
		line.StepStyle = plotter.PostStep
		line.LineStyle.Color, line.LineStyle.Width = rowColor(p.colors[row]), 1.8
		plot.Add(line)
		least = min(least, points[len(points)-1].Y)
		low, high = min(low, points[0].X), max(high, points[len(points)-1].X)
	}
	if high == 0 {
		return "", nil
	}
	plot.X.Scale, plot.Y.Scale = plotLog{}, plotLog{}
	// Neither range may be empty: the library would widen it to zero.
	plot.X.Min = decadeBelow(low)
	plot.X.Max = max(min(high, math.MaxFloat64/2)*1.1, 10*plot.X.Min)
	plot.Y.Min, plot.Y.Max = min(decadeBelow(least), 0.1), 1
	plot.X.Tick.Marker, plot.Y.Tick.Marker = decades{}, decades{percent: true}
	plot.X.Label.Text = strings.TrimSpace("more than, " + unitOf(name))
	plot.Y.Label.Text = "share of all"
	return svg(plot, 420, 230, name)
}

// exceeding returns (upper limit, share of the samples above it), down to the
// last sample.
func exceeding(buckets []Bucket) plotter.XYs {
	total := int64(0)
	for _, b := range buckets {
		total += b.Count
	}
	var points plotter.XYs
	left := total
	for _, b := range buckets {
		if b.Count == 0 {
			continue
		}
		x := max(b.Low, 0.5)
		points = append(points, plotter.XY{X: x, Y: float64(left) / float64(total)})
		left -= b.Count
	}
	return points
}

func decadeBelow(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v))) }

// plotLog is a logarithmic scale that survives an empty range.
type plotLog struct{}

// Normalize implements plot.Normalizer.
func (plotLog) Normalize(low, high, x float64) float64 {
	if low <= 0 || high <= low || x <= 0 {
		return 0
	}
	return math.Log(x/low) / math.Log(high/low)
}

// decades marks powers of ten.
type decades struct{ percent bool }

// Ticks implements plot.Ticker.
func (d decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	if low <= 0 {
		return nil
	}
	for v := decadeBelow(low); v <= high*1.0001; v *= 10 {
		for n := 1.0; n < 10; n++ {
			if n*v < low*0.999 || n*v > high*1.001 {
				continue
			}
			tick := plot.Tick{Value: n * v}
			if n == 1 && high/low < 1e9 {
				tick.Label = fmt.Sprintf("%g", v)
				if d.percent {
					tick.Label = strings.TrimSuffix(fmt.Sprintf("%.4g", 100*v), ".") + " %"
				}
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
