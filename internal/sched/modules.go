package sched

import "time"

// modulePause is how long after a kernel module was loaded its hooks are attached at
// the latest.
const modulePause = 5 * time.Second

// followModules attaches the sources whose module was not there at first, until there
// is none left.
func (s *Scheduler) followModules() {
	ticker := time.NewTicker(modulePause)
	defer ticker.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-ticker.C:
			if s.attachSources(nil) {
				return
			}
		}
	}
}
