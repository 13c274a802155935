package oracle

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// contract is the header that the scheduler writes its records by.
func contract(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../bpf/rota.h")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The scheduler numbers kinds and bits as this package does.
func TestNumbersOfTheHeader(t *testing.T) {
	text := contract(t)
	for name, want := range map[string]uint64{
		"RECORD_JOIN": uint64(Join), "RECORD_LEAVE": uint64(Leave), "RECORD_SETTLE": uint64(Settle),
		"RECORD_RELEASE": uint64(Release), "RECORD_WAIT": uint64(Wait), "RECORD_PICK": uint64(Pick),
		"RECORD_RUN": uint64(Run), "RECORD_CHARGE": uint64(Charge), "RECORD_AHEAD": uint64(Ahead),
		"RECORD_YIELD": uint64(Yield), "RECORD_PULL": uint64(Pull),
		"JOIN_EMPTY": uint64(JoinEmpty), "JOIN_NEW": uint64(JoinNew), "JOIN_GHOST": uint64(JoinGhost), "JOIN_BRIEF": uint64(JoinBrief),
		"LEAVE_SLEEP": uint64(LeaveSleep), "LEAVE_AFAR": uint64(LeaveAfar), "LEAVE_GHOST": uint64(LeaveGhost),
		"LEAVE_LAST": uint64(LeaveLast), "PULL_IN_VAIN": uint64(InVain),
		"PICK_DISPATCH": uint64(Dispatch), "PICK_KEEP": uint64(Keep), "PICK_PREEMPT": uint64(Preempt),
		"PICK_DIRECT": uint64(Direct), "PICK_RESCUE": uint64(Rescue), "PICK_LAST": uint64(Last), "PICK_COME": uint64(Come),
	} {
		m := regexp.MustCompile(`(?m)^\s+ROTA_` + name + ` = (\d+),`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("rota.h: no ROTA_%s", name)
		} else if got, _ := strconv.ParseUint(m[1], 10, 64); got != want {
			t.Errorf("rota.h: ROTA_%s is %d, here %d", name, got, want)
		}
	}
	if got, want := strings.Count(text, "\tROTA_RECORD_"), int(Pull); got != want {
		t.Errorf("rota.h has %d kinds, here are %d", got, want)
	}
}

// The members of struct rota_record follow each other as an event is decoded.
func TestLayoutOfTheHeader(t *testing.T) {
	body := regexp.MustCompile(`(?s)\nstruct rota_record \{\n(.*?)\n\};`).FindStringSubmatch(contract(t))
	if body == nil {
		t.Fatal("rota.h: no struct rota_record")
	}
	var got []string
	offset := 0
	for _, m := range regexp.MustCompile(`(?m)^\s+__u(8|16|32|64) (\w+);`).FindAllStringSubmatch(body[1], -1) {
		bits, _ := strconv.Atoi(m[1])
		got = append(got, fmt.Sprintf("%s %d", m[2], offset))
		offset += bits / 8
	}
	want := []string{"time_ns 0", "vt 8", "deadline_vt 16", "now_vt 24", "span_ns 32", "tid 40", "weight 44", "request_ns 48",
		"cpu 52", "tier 54", "kind 55", "how 56", "writer 58", "slice_ns 60"}
	if strings.Join(got, ", ") != strings.Join(want, ", ") || offset != eventBytes {
		t.Errorf("rota.h: %d bytes, %v; want %d bytes, %v", offset, got, eventBytes, want)
	}
}
