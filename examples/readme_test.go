//go:build unix

package examples_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// skipped are commands that cannot be run here, by a text that they contain, with the reason.
var skipped = []struct{ has, why string }{
	{"go test ", "this test is part of some of them, and others take minutes"},
	{"gcloud ", "it needs Google Cloud"},
	{"protoc ", "it needs the protobuf compiler"},
	{".ci/release ", "it makes the tags of a release"},
	{"git clone ", "the copy is there"},
	{"/examples/apps/pubsub ", "it needs Google Cloud"},
	{"-cloud", "it needs Google Cloud"},
	{"-vehicles 10000", "it stores half a million points"},
	{"--project ", "it needs Google Cloud"},
	{"mosquitto", "it needs a broker"},
	{"-C examples/apps/promapi ", "it is a module of its own"},
}

// refused are requests that the READMEs show as mistakes.
var refused = []string{"size=5000"}

// TestReadmes runs every command of each README and of each page in docs, in order, in a fresh copy of the repository.
// It fails if a command fails or leaves a file that git would show.
func TestReadmes(t *testing.T) {
	if testing.Short() {
		t.Skip("the commands take half a minute")
	}
	for _, program := range []string{"bash", "git", "curl", "gzip", "seq", "sha256sum"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the commands need %s: %v", program, err)
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	readmes := inExamples(t, root, "README.md")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	shims, origin := writeShims(t, root), newOrigin(t, root)
	for _, readme := range slices.Concat(readmes, pages, []string{filepath.Join(root, "README.md")}) {
		if ownModule(filepath.Dir(readme)) && filepath.Dir(readme) != root {
			continue // its own test runs them
		}
		name, err := filepath.Rel(root, readme)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		steps := commands(string(text))
		if len(steps) == 0 && bytes.Contains(text, []byte("go run ./examples")) {
			t.Errorf("%s: no command found", name)
		}
		if !slices.ContainsFunc(steps, runs) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, origin, shims)
			for _, step := range steps {
				u.run(step)
			}
			u.stop(0)
			if left := u.git("status", "--porcelain"); left != "" {
				t.Errorf("after the commands of %s, git status shows:\n%s", name, left)
			}
		})
	}
}

// ownModule reports whether a folder is the root of a module.
func ownModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// runs reports whether a command is more than a definition, and can be run here.
func runs(step string) bool { return notRun(step) == "" && !definition.MatchString(step) }

// notRun returns why a command is not run, or nothing if it is run.
func notRun(step string) string {
	for _, s := range skipped {
		if strings.Contains(step, s.has) {
			return s.why
		}
	}
	return ""
}

// found matches a fence of shell commands, or a command in a line of text.
var found = regexp.MustCompile("(?ms)^```sh\n(.*?)^```|`(go run [^`]*)`")

// commands returns the commands of a README in order. Lines that end in a backslash are joined.
func commands(readme string) []string {
	var out []string
	for _, m := range found.FindAllStringSubmatch(readme, -1) {
		if m[2] != "" {
			out = append(out, strings.Join(strings.Fields(m[2]), " "))
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", "")) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				out = append(out, line)
			}
		}
	}
	return out
}

func TestCommands(t *testing.T) {
	got := commands("Text, `go run ./a\n  -b` and `x`.\n```sh\n# a remark\nexport A=1\ncurl \\\n  -d x\n\n```\n```go\nnot()\n```\n")
	want := []string{"go run ./a -b", "export A=1", "curl   -d x"}
	if !slices.Equal(got, want) {
		t.Errorf("commands found %q, want %q", got, want)
	}
}

// writeShims creates a go command that runs the examples of root in the folder of the caller. It builds each program
// once with the real go command: building it again would cost a second each time.
func writeShims(t *testing.T, root string) string {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		// The shim behaves like go run: it prints the status of a failing program, and exits with 1.
		"go": `if [[ $1 != run || $2 != ./examples/* ]]; then exec "` + real + `" "$@"; fi
"` + dir + `/${2##*/}.program" "${@:3}" || { echo "exit status $?" >&2; exit 1; }`,
		"keep": `cp "$1" "$KEEP"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/usr/bin/env bash\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var building sync.WaitGroup
	for _, main := range inExamples(t, root, "main.go") {
		if ownModule(filepath.Dir(main)) {
			continue
		}
		building.Go(func() {
			name := filepath.Base(filepath.Dir(main))
			cmd := exec.CommandContext(t.Context(), real, "run", "-exec", filepath.Join(dir, "keep"), ".") // keep keeps the binary
			cmd.Dir, cmd.Env = filepath.Dir(main), append(environment(), "KEEP="+filepath.Join(dir, name+".program"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s does not build: %v\n%s", main, err, out)
			}
		})
	}
	if building.Wait(); t.Failed() {
		t.FailNow()
	}
	return dir
}

// inExamples returns the paths of the files with a name in the folders of the examples and of the apps.
func inExamples(t *testing.T, root, name string) (paths []string) {
	t.Helper()
	for _, folder := range []string{"examples/*", "examples/apps/*"} {
		found, err := filepath.Glob(filepath.Join(root, folder, name))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s in %s of %s: %v", name, folder, root, err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// environment returns this process's environment without variables that the programs read.
func environment() (env []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if name != "GOWORK" && name != "BIGTABLE_EMULATOR_HOST" && !strings.HasPrefix(name, "TIDEMARK_") && !strings.HasPrefix(name, "OTEL_") {
			env = append(env, v)
		}
	}
	return env
}

// user is somebody with a fresh copy of the repository who types commands.
type user struct {
	t       *testing.T
	dir     string
	env     []string
	defined []string          // lines that later commands need: variables and functions
	ports   map[string]string // the port used here, by the port in the README
	servers []*server         // that run
}

// newOrigin returns a repository with the files of root in one commit, which users clone.
func newOrigin(t *testing.T, root string) string {
	t.Helper()
	u := &user{t: t, dir: t.TempDir(), env: gitEnvironment()}
	copyFiles(t, root, u.dir)
	u.git("init", "--quiet")
	u.git("add", "--all")
	u.git("-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "--quiet", "--message", "all")
	return u.dir
}

func gitEnvironment() []string {
	return append(environment(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
}

func newUser(t *testing.T, origin, shims string) *user {
	t.Helper()
	u := &user{t: t, dir: t.TempDir(), ports: map[string]string{}}
	u.env = append(gitEnvironment(), "PATH="+shims+string(os.PathListSeparator)+os.Getenv("PATH"), "SECRET=a-secret", "TOKEN=a-token")
	u.git("clone", "--quiet", origin, ".")
	// A file of the reader's own, which the README of ingest mentions.
	u.bash(`printf 'readings,name=truck_%d velocity=5 1767225600000000000\n' 1 2 3 | gzip >trucks.lp.gz; echo /trucks.lp.gz >>.git/info/exclude`)
	t.Cleanup(func() { u.stop(0) })
	return u
}

// copyFiles copies the files of a clone of the repository. It reads every file, so that a change of any runs the test
// again.
func copyFiles(t *testing.T, root, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch top := strings.SplitN(filepath.ToSlash(name), "/", 2)[0]; {
		case top == ".git", top == ".cache", strings.HasPrefix(top, "tidemark-"):
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	definition = regexp.MustCompile(`^(export )?[A-Za-z_]+=`)
	serves     = regexp.MustCompile(`^go run \./examples/(?:apps/)?(console|emulator|fleet|ingest|latestapi)\b`)
	ends       = regexp.MustCompile(` -(file|help)\b`) // with these flags a server only prints or loads, and ends
	address    = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	mistake    = regexp.MustCompile(`HTTP/1\.1 [45]|"title":`)
)

// defaults are the default addresses of the programs.
var defaults = map[string]string{"console": "127.0.0.1:8090", "emulator": "127.0.0.1:8087", "fleet": "127.0.0.1:8091", "ingest": "127.0.0.1:8086", "latestapi": "127.0.0.1:8088"}

// besideTour is in commands for another terminal, while the tour runs in the first one.
const besideTour = " tidemark-fleet"

// run types one command. A server keeps running until the next program is started, the tour also beside those that use
// its folder.
func (u *user) run(step string) {
	u.t.Helper()
	if why := notRun(step); why != "" {
		u.t.Logf("not run, %s: %s", why, step)
		return
	}
	if strings.HasPrefix(step, "go run ") || strings.Contains(step, "| go run ") {
		if strings.Contains(step, besideTour) {
			u.stop(1)
		} else {
			u.stop(0)
		}
	}
	began := time.Now()
	switch m := serves.FindStringSubmatch(step); {
	case definition.MatchString(step):
		u.defined = append(u.defined, step)
	case m != nil && !ends.MatchString(step):
		u.start(step, m[1])
	default:
		out := u.bash(strings.Join(append(slices.Clone(u.defined), step), "\n"))
		wrong := mistake.MatchString(out)
		if meant := slices.ContainsFunc(refused, func(r string) bool { return strings.Contains(step, r) }); wrong != meant {
			u.t.Errorf("%s\nreturns an error response: %v, want %v:\n%s", step, wrong, meant, out)
		}
	}
	u.t.Logf("%5.1fs  %s", time.Since(began).Seconds(), step)
}

// here replaces the addresses in the READMEs by the servers' addresses here.
func (u *user) here(command string) string {
	return address.ReplaceAllStringFunc(command, func(a string) string { return cmp.Or(u.ports[a], a) })
}

// bash runs a command and returns its output.
func (u *user) bash(command string) string {
	u.t.Helper()
	cmd := u.command(context.WithoutCancel(u.t.Context()), u.here(command))
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s\nfails with %v:\n%s", command, err, out)
	}
	return string(out)
}

func (u *user) git(args ...string) string {
	u.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (u *user) command(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
	cmd.Dir, cmd.Env = u.dir, u.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C reaches everything that it starts, and nothing else
	return cmd
}

// server is a program that runs until Ctrl-C.
type server struct {
	cmd  *exec.Cmd
	step string
	out  *io.PipeReader
	text bytes.Buffer  // its output; read it only after done is closed
	done chan struct{} // closed when it prints no more
}

// start starts a server on free ports and waits until it listens.
func (u *user) start(step, name string) {
	u.t.Helper()
	shown := append([]string{defaults[name]}, address.FindAllString(step, -1)...)
	free := address.ReplaceAllString(strings.Replace(step, "/"+name, "/"+name+" -addr 127.0.0.1:0", 1), "127.0.0.1:0")
	out, in := io.Pipe()
	s := &server{cmd: u.command(context.WithoutCancel(u.t.Context()), free), step: step, out: out, done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = in, in
	if err := s.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.servers = append(u.servers, s)
	go func() { in.CloseWithError(s.cmd.Wait()) }()
	listens := make(chan []string, 1)
	go func() {
		defer close(s.done)
		var lines []byte
		reported := false
		for buf := make([]byte, 4096); ; {
			n, err := s.out.Read(buf)
			lines = append(lines, buf[:n]...)
			if text := string(lines); !reported && (strings.Contains(text, "Ctrl-C stops") && address.MatchString(text) || err != nil) {
				reported = true
				listens <- address.FindAllString(text, -1)
			}
			if err != nil {
				s.text.Write(lines)
				return
			}
		}
	}()
	at := <-listens
	if len(at) == 0 {
		<-s.done
		u.t.Fatalf("%s\nends before it listens:\n%s", step, s.text.String())
	}
	// The programs print the address of metrics before their own.
	u.ports[shown[0]] = at[len(at)-1]
	if len(shown) > 1 {
		u.ports[shown[1]] = at[0]
	}
}

// stop presses Ctrl-C in all terminals but the first ones.
func (u *user) stop(first int) {
	u.t.Helper()
	for n := len(u.servers); n > first; n-- {
		s := u.servers[n-1]
		u.servers = u.servers[:n-1]
		u.interrupt(s)
	}
}

func (u *user) interrupt(s *server) {
	u.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		u.t.Error(err)
	}
	<-s.done
	// go run itself fails after Ctrl-C; it names the program's own status only if that is a failure.
	if text := s.text.String(); strings.Contains(text, "exit status ") {
		u.t.Errorf("%s\nfails after Ctrl-C:\n%s", s.step, text)
	}
}
