package daemon

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// again waits as long as the last look says, and looks no more once it is over.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start, looks := time.Now(), []time.Duration{}
		done := again(ctx, time.Second, func() time.Duration {
			looks = append(looks, time.Since(start))
			return time.Duration(len(looks)) * time.Minute
		})
		time.Sleep(3*time.Minute + 30*time.Second)
		cancel()
		<-done
		time.Sleep(time.Hour)
		want := []time.Duration{time.Second, time.Minute + time.Second, 3*time.Minute + time.Second}
		if !slices.Equal(looks, want) {
			t.Errorf("looked after %v, want %v", looks, want)
		}
	})
}
