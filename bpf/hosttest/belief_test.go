package hosttest

import (
	"strconv"
	"strings"
	"testing"
)

// believed says whether one is believed after words such as "right 8", "wrong 1".
func believed(t testing.TB, d driver, words ...string) bool {
	t.Helper()
	var commands []command
	for _, word := range words {
		name, times, _ := strings.Cut(word, " ")
		n, err := strconv.ParseUint(times, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, command{name, n, 0})
	}
	got := d.run(t, append(commands, command{"believed", 0, 0}))
	return got[len(got)-1].result != 0
}

// TestBelief: who was right is believed, and who abuses that needs longer each time.
func TestBelief(t *testing.T) {
	d := build(t)
	for _, c := range []struct {
		name  string
		words string
		want  bool
	}{
		{"nothing is known", "right 0", false},
		{"not often enough", "right 7", false},
		{"often enough", "right 8", true},
		{"for as long as he likes", "right 100000", true},
		{"wrong now and then, and never believed", "right 7, wrong 1, right 7", false},
		{"which costs nothing", "right 7, wrong 1, right 8", true},
		{"who was believed and wrong is not any more", "right 8, wrong 1", false},
		{"and needs twice as many", "right 8, wrong 1, right 15", false},
		{"no more than twice", "right 8, wrong 1, right 16", true},
		{"then four times", "right 8, wrong 1, right 16, wrong 1, right 31", false},
		{"no more than that", "right 8, wrong 1, right 16, wrong 1, right 32", true},
		{"a regular liar is not believed", "right 8, wrong 1, right 16, wrong 1, right 24, wrong 1, right 24, wrong 1, right 24", false},
		{"but later again", "right 255, wrong 1, right 255, wrong 1, right 255, wrong 1, right 255, wrong 1, right 255, wrong 1, right 128", true},
		{"no sooner", "right 255, wrong 1, right 255, wrong 1, right 255, wrong 1, right 255, wrong 1, right 255, wrong 1, right 127", false},
		{"who was nearly right is not believed", "right 255, nearly 1", false},
		{"and needs as many as at first", "right 255, nearly 1, right 7", false},
		{"no more than that", "right 255, nearly 9, right 8", true},
		{"nor more than he needed since he was wrong", "right 8, wrong 1, right 9, nearly 1, right 16", true},
		{"and no fewer", "right 8, wrong 1, right 9, nearly 1, right 15", false},
		{"after a long time of truth half as many", "right 8, wrong 1, right 256, wrong 1, right 15", false},
		{"and no more than half", "right 8, wrong 1, right 16, wrong 1, right 256, wrong 1, right 32", true},
		{"and the next half only after as long again", "right 8, wrong 1, right 16, wrong 1, right 258, wrong 1, right 31", false},
	} {
		if got := believed(t, d, strings.Split(c.words, ", ")...); got != c.want {
			t.Errorf("%s: after %s believed: %t, want %t", c.name, c.words, got, c.want)
		}
	}
}

// FuzzBelief: no past makes anybody believed who was wrong, or nearly right, just now, or not after
// 255 truths.
func FuzzBelief(f *testing.F) {
	d := build(f)
	f.Add(uint8(8), uint8(1), uint8(16), uint8(2), uint8(0))
	f.Add(uint8(255), uint8(255), uint8(0), uint8(9), uint8(1))
	f.Fuzz(func(t *testing.T, a, b, c, e, n uint8) {
		word := func(name string, n uint8) string { return name + " " + strconv.Itoa(int(n)) }
		past := []string{word("right", a), word("wrong", b), word("nearly", n), word("right", c), word("wrong", e)}
		if believed(t, d, append(past, "wrong 1")...) {
			t.Errorf("%v: believed, wrong as he was", past)
		}
		if believed(t, d, append(past, "wrong 1", "right 7")...) {
			t.Errorf("%v: believed after 7 truths", past)
		}
		if believed(t, d, append(past, "right 255", "nearly 1", "right 7")...) {
			t.Errorf("%v: after 255 truths nearly right once, and believed 7 truths later", past)
		}
		if !believed(t, d, append(past, "right 255")...) {
			t.Errorf("%v: not believed after 255 truths", past)
		}
	})
}
