//go:build !unix

package bridge

import "os"

// savesState is a signal that mosquitto does not have here: TestCrashes fails where mosquitto is installed.
var savesState os.Signal = os.Interrupt
