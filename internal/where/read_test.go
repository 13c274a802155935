package where

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What CPUs have counted beside the table belongs to its entries, as long as it was not
// forgotten.
func TestAddRecent(t *testing.T) {
	one, two := seenKey{TID: 1, CPU: 0}, seenKey{TID: 2, CPU: 1}
	seen := map[seenKey]seenValue{one: {Count: 5, UID: 7}, two: {Count: 1}}
	addRecent(seen, []recent{
		{Key: one, Count: 10, Era: 3},
		{Key: two, Count: 100, Era: 2},
		{Key: seenKey{TID: 3}, Count: 1000, Era: 3},
		{},
	}, 3)
	if diff := cmp.Diff(map[seenKey]seenValue{one: {Count: 15, UID: 7}, two: {Count: 1}}, seen, cmp.AllowUnexported(seenValue{})); diff != "" {
		t.Error(diff)
	}
}
