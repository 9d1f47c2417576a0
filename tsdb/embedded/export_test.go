package embedded

import "time"

// SetOwnerWait changes how long New with Attach looks for the owner.
func SetOwnerWait(d time.Duration) (reset func()) {
	old := ownerWait
	ownerWait = d
	return func() { ownerWait = old }
}
