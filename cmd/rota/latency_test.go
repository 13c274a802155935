package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"rota/bench/binder/latency"
	"rota/internal/api"
)

// serving is a daemon that knows these threads.
type serving struct {
	canned
	threads map[int][]api.Thread
}

func (s serving) Explain(_ context.Context, pid int) (api.Explanation, error) {
	if s.threads[pid] == nil {
		return api.Explanation{}, &api.Error{Code: 404, Fault: "no such task", Fix: "look for it"}
	}
	return api.Explanation{PID: pid, Threads: s.threads[pid]}, nil
}

// TestCallsOf: the calls of all threads of all servers, and of nobody else.
func TestCallsOf(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	if _, err := callsOf(api.NewClient(socket))(t.Context(), []int{7}); err == nil || !strings.Contains(err.Error(), "daemon not running") {
		t.Errorf("without a daemon: %v", err)
	}
	l, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := func(tid int, given, boosted uint64) api.Thread {
		return api.Thread{TID: tid, Name: latency.ServerName, Calls: api.Calls{Given: given, Boosted: boosted}}
	}
	late := server(10, 1, 1)
	late.Name = "rota"
	go api.Serve(t.Context(), l, serving{threads: map[int][]api.Thread{
		7: {server(7, 0, 0), server(8, 3, 2)}, 9: {server(9, 39, 39), late},
		11: {{TID: 11, Name: "other"}, server(12, 1, 1)}, 13: {server(14, 1, 1)},
	}}, slog.New(slog.DiscardHandler))
	ask := callsOf(api.NewClient(socket))
	if got, err := ask(t.Context(), []int{7, 9}); err != nil || got != (latency.Boosts{Given: 43, Boosted: 42}) {
		t.Errorf("%+v, %v", got, err)
	}
	for pid, fault := range map[int]string{8: "no such task", 11: `process 11 is "other"`, 13: `process 13 is ""`} {
		if got, err := ask(t.Context(), []int{9, pid}); err == nil || !strings.Contains(err.Error(), fault) || got != (latency.Boosts{}) {
			t.Errorf("process %d: %+v, %v", pid, got, err)
		}
	}
}
