package sched

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// raw is what the kernel side puts into the ring for v.
func raw(t testing.TB, v any) []byte {
	t.Helper()
	data, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseEvent(t *testing.T) {
	record := raw(t, rotaEvent{Kind: 3, Tid: 0xfffffffe, Tgid: 41, Asked: 77, StartNs: 1 << 63})
	event := Event{Kind: EventCgroup, Task: TaskID{TID: 0xfffffffe, Start: 1 << 63}, TGID: 41, Asked: 77}
	tests := map[string]struct {
		data []byte
		want Event
		err  string
	}{
		"a record":          {record, event, ""},
		"more than that":    {append(bytes.Clone(record), 1, 2, 3), event, ""},
		"one byte short":    {record[:23], Event{}, "event of 23 bytes: want 24"},
		"nothing":           {nil, Event{}, "event of 0 bytes: want 24"},
		"zeros":             {make([]byte, 24), Event{}, ""},
		"the kernel's end":  {raw(t, rotaEvent{Kind: 7}), Event{Kind: eventExit}, ""},
		"a kind of the day": {raw(t, rotaEvent{Kind: 999}), Event{Kind: 999}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseEvent(test.data)
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 23))
	f.Add(raw(f, rotaEvent{Kind: 1, Tid: 2, Tgid: 3, Asked: 4, StartNs: 5}))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		event, err := parseEvent(data)
		if (err != nil) != (len(data) < 24) {
			t.Fatalf("%d bytes: error %v", len(data), err)
		}
		if err != nil {
			return
		}
		back := raw(t, rotaEvent{
			Kind: uint32(event.Kind), Tid: event.Task.TID, Tgid: event.TGID,
			Asked: event.Asked, StartNs: event.Task.Start,
		})
		if !bytes.Equal(back, data[:24]) {
			t.Fatalf("%v becomes %+v", data[:24], event)
		}
	})
}

func TestExitInfo(t *testing.T) {
	const (
		unregKernel = 66 // SCX_EXIT_UNREG_KERN
		failed      = 1025
		hotplug     = 1 << 32 // SCX_ECODE_RSN_HOTPLUG: a reason, not a request
	)
	tests := map[string]struct {
		kind           uint64
		code           int64
		closing        bool
		asked, restart bool
	}{
		"closed by us":                     {kind: exitUnreg, closing: true, asked: true},
		"closed by our program":            {kind: exitUnregBPF, closing: true, asked: true},
		"closed by somebody else":          {kind: exitUnreg},
		"ended by the kernel meanwhile":    {kind: unregKernel, closing: true},
		"an error while closing":           {kind: failed, closing: true},
		"a CPU came":                       {kind: unregKernel, code: hotplug | ecodeRestart, restart: true},
		"a CPU came, no restart asked for": {kind: unregKernel, code: hotplug},
		"a CPU came while closing":         {kind: exitUnreg, code: ecodeRestart, closing: true, asked: true, restart: true},
		"an error with an odd code":        {kind: failed, code: ecodeRestart},
		"the first kind of error":          {kind: exitErrorKind, code: ecodeRestart},
		"a negative code":                  {kind: failed, code: -22},
		"nothing":                          {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			record := rotaExit{Kind: test.kind, Code: test.code}
			copy(record.Reason[:], "reason\x00left over")
			copy(record.Msg[:], strings.Repeat("m", 2*exitText))
			copy(record.Dump[:], "CPU 0\n  task 1\n")
			want := ExitInfo{
				Kind: test.kind, Code: test.code, Asked: test.asked, Restart: test.restart,
				Reason: "reason", Msg: strings.Repeat("m", exitText), Dump: "CPU 0\n  task 1\n",
			}
			if got := exitInfo(&record, test.closing); got != want {
				t.Errorf("%+v\nwant %+v", got, want)
			}
		})
	}
}

func TestCString(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"\x00":                 "",
		"rota\x00\x00":         "rota",
		"rota\x00garbage":      "rota",
		"not terminated":       "not terminated",
		"bad \xff\xfe end\x00": "bad ? end",
		"cut \xc3":             "cut ?",
		"gr\u00fc\u00df":       "gr\u00fc\u00df",
	} {
		if got := cString([]byte(in)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
