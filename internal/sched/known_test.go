package sched

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestKnownKey(t *testing.T) {
	full := Known{Comm: "fifteen-letters", Cgroup: 7, UID: 8}
	tests := []struct {
		name string
		by   KnownBy
		what Known
		want rotaKnown
		no   bool
	}{
		{"all", KnownBy{true, true, true}, full, rotaKnown{Comm: [16]byte([]byte("fifteen-letters\x00")), Cgroup: 7, User: 8, Epoch: 15}, false},
		{"what no rule looks at is left out", KnownBy{UID: true}, full, rotaKnown{User: 8, Epoch: 12}, false},
		{"a longer name than the kernel keeps", KnownBy{Comm: true}, Known{Comm: "sixteen-letters!"}, rotaKnown{}, true},
		{"which no rule looks at", KnownBy{UID: true}, Known{Comm: "sixteen-letters!"}, rotaKnown{Epoch: 12}, false},
		{"no cgroup", KnownBy{Cgroup: true}, Known{}, rotaKnown{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := known{by: tt.by, epoch: 1<<knownShift | tt.by.bits()}
			if got, can := k.key(tt.what); can == tt.no || (can && got != tt.want) {
				t.Errorf("%+v, %v", got, can)
			}
		})
	}
	if _, can := (&known{by: KnownBy{Comm: true}}).key(full); can {
		t.Error("something is remembered without an epoch")
	}
}

// What does not fit makes room for itself, under another epoch.
func TestKnownFull(t *testing.T) {
	there, epochs := map[rotaKnown]uint32{}, []uint32{}
	k := known{
		keys:   map[rotaKnown]struct{}{},
		begin:  func(epoch uint32) error { epochs = append(epochs, epoch); return nil },
		put:    func(key rotaKnown, class uint32) error { there[key] = class; return nil },
		remove: func(key rotaKnown) error { delete(there, key); return nil },
	}
	remember := func(uid uint32) {
		t.Helper()
		if err := k.remember(Known{UID: uid}, 7); err != nil {
			t.Fatal(err)
		}
	}
	remember(0)
	if len(there) != 0 {
		t.Error("something is remembered before it is said by what")
	}
	if err := k.forget(KnownBy{UID: true}); err != nil {
		t.Fatal(err)
	}
	for uid := range uint32(MaxKnown) {
		remember(uid)
		remember(uid)
	}
	if len(there) != MaxKnown || len(epochs) != 1 {
		t.Errorf("%d are remembered in %d epochs", len(there), len(epochs))
	}
	remember(MaxKnown)
	if len(epochs) != 2 || epochs[0] == epochs[1] || len(there) != 1 || there[rotaKnown{User: MaxKnown, Epoch: epochs[1]}] != 7 {
		t.Errorf("epochs %v, remembered %v", epochs, there)
	}
	if err := k.forget(KnownBy{}); err != nil || len(there) != 0 || epochs[2] != 0 {
		t.Errorf("%v: epochs %v, remembered %v", err, epochs, there)
	}
}

// The bits are those of the header.
func TestKnownBits(t *testing.T) {
	text := header(t, "rota.h")
	for name, want := range map[string]int{"COMM": knownComm, "CGROUP": knownCgroup, "USER": knownUser} {
		m := regexp.MustCompile(`ROTA_KNOWN_` + name + ` = (\d+),`).FindStringSubmatch(text)
		if m == nil || m[1] != strconv.Itoa(want) {
			t.Errorf("ROTA_KNOWN_%s is %v, want %d", name, m, want)
		}
	}
	if !strings.Contains(text, "#define ROTA_KNOWN_SHIFT "+strconv.Itoa(knownShift)+" ") {
		t.Errorf("ROTA_KNOWN_SHIFT is not %d", knownShift)
	}
	if !strings.Contains(header(t, "known.bpf.h"), "#define KNOWN_MAX "+strconv.Itoa(MaxKnown)+"\n") {
		t.Errorf("KNOWN_MAX is not %d", MaxKnown)
	}
}
