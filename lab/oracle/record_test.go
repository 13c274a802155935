package oracle

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func written(t testing.TB, rec *Record) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, rec); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadWritten(t *testing.T) {
	rec := first(simulate(3, 3, 6, 50, ""))
	got, err := Read(bytes.NewReader(written(t, rec)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec, got); diff != "" {
		t.Error(diff)
	}
}

// The bytes of one event, as the format says.
func TestFormat(t *testing.T) {
	e := Event{Time: 1, V: 2, Deadline: 3, NowV: 4, Span: 5, TID: 6, Weight: 7, Request: 8, CPU: 0, Tier: 2, Kind: Pick, How: Last, Writer: 0, Slice: 9}
	data := written(t, &Record{Capacity: 9, Parts: [][]Event{{e}}})
	want := append([]byte("ROTAREC1"), 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	for _, n := range []uint64{1, 2, 3, 4, 5} {
		want = binary.LittleEndian.AppendUint64(want, n)
	}
	want = append(want, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 2, 6, 6, 0, 0, 0, 9, 0, 0, 0)
	if !bytes.Equal(data, want) {
		t.Errorf("%x, want %x", data, want)
	}
}

func TestReadRefuses(t *testing.T) {
	good := written(t, &Record{Capacity: 2, Parts: [][]Event{{{Tier: 1, Kind: Wait}}, {}}})
	change := func(at int, b byte) []byte {
		data := bytes.Clone(good)
		data[at] = b
		return data
	}
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "header: the file ends here"},
		{"magic", change(7, '2'), `header begins with "ROTAREC2"`},
		{"no CPU", change(8, 0), "0 CPUs: must be 1..8192"},
		{"many CPUs", change(11, 1), "CPUs: must be 1..8192"},
		{"no count", good[:20], "CPU 0: count: the file ends here"},
		{"count", change(16, 3), "CPU 0: 3 events: at most 2 fit"},
		{"short", good[:80], "CPU 0: event 0 of 1: the file ends here"},
		{"second part", good[:90], "CPU 1: count: the file ends here"},
		{"too long", append(bytes.Clone(good), 0), "bytes after"},
		{"kind", change(24+55, 12), "CPU 0: event 0 of 1: kind 12"},
		{"tier", change(24+54, 3), "tier 3"},
		{"cpu", change(24+52, 2), "cpu 2: must be less than 2"},
		{"writer", change(24+58, 1), "written by CPU 1: must be 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Read(bytes.NewReader(test.data)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// What a full part has no room for must not be judged with a hole in it.
func TestFullPart(t *testing.T) {
	rec := &Record{Capacity: 1, Parts: [][]Event{
		{{Time: 10, Tier: 1, Kind: Wait, TID: 1}},
		{},
	}}
	if report := Check(rec); report.Events != 1 || report.Ignored != 0 {
		t.Errorf("%d events, %d ignored", report.Events, report.Ignored)
	}
	rec = &Record{Capacity: 2, Parts: [][]Event{
		{{Time: 10, Tier: 1, Kind: Settle}, {Time: 20, Tier: 1, Kind: Settle}},
		{{Time: 21, Tier: 1, Kind: Settle, CPU: 1, Writer: 1}},
	}}
	if report := Check(rec); report.Events != 2 || report.Ignored != 1 {
		t.Errorf("%d events, %d ignored", report.Events, report.Ignored)
	}
}

// FuzzRead reads and judges whatever comes: an error or a report, no panic.
func FuzzRead(f *testing.F) {
	f.Add(written(f, first(simulate(3, 2, 4, 10, ""))))
	f.Add(written(f, &Record{Capacity: 2, Parts: [][]Event{{{Tier: 1, Kind: Join}}, {}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if again := written(t, rec); len(again) != len(data) {
			t.Errorf("%d bytes became %d", len(data), len(again))
		}
		_ = Check(rec).String()
	})
}

// FuzzCheck judges records whose fields are wrong in places.
func FuzzCheck(f *testing.F) {
	f.Add(uint64(1), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, seed uint64, damage []byte) {
		rec := first(simulate(seed, 2, 5, 20, ""))
		for i := 0; i+4 < len(damage); i += 5 {
			part := rec.Parts[damage[i]&1]
			if len(part) == 0 {
				continue
			}
			var data [eventBytes]byte
			e := &part[int(damage[i+1])%len(part)]
			e.encode(&data)
			data[damage[i+2]%eventBytes] = damage[i+3]
			if hurt := decode(&data); hurt.check(2, e.Writer) == nil {
				*e = hurt
			}
		}
		_ = Check(rec).String()
	})
}
