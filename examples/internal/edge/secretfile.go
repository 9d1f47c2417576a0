package edge

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Lines calls add with each line of a file that is neither blank nor a comment. It refuses a file that every user of
// the machine may write: a user who can change it decides which requests are accepted. Its errors name the file and the
// line.
func Lines(name string, add func(string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && runtime.GOOS != "windows" { // where Go invents the mode
		return fmt.Errorf("%s has the mode %v, so every user may write it; want mode 0600", name, mode)
	}
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := add(text); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
	}
	return in.Err()
}
