package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkLatest100Redis compares reads of the newest point of each of 100 devices with Redis, whose server runs as a
// process of its own on a Unix socket: 100 GETs of the JSON payload in one write, read by a buffered reader and decoded
// to the same struct (redis), or not (redis-raw). Cases sdk and sdk-raw call LatestMany on an engine in memory and one
// in a folder. It needs redis-server: apt-get install redis-server.
func BenchmarkLatest100Redis(b *testing.B) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		b.Skip("no redis-server here; apt-get install redis-server")
	}
	const n = 100
	socket := filepath.Join(b.TempDir(), "redis")
	server := exec.CommandContext(b.Context(), program, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	var conn net.Conn
	for try := 0; conn == nil; try++ {
		if conn, err = net.Dial("unix", socket); err != nil && try == 500 {
			b.Fatal(err)
		} else if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	defer conn.Close()
	payload, err := json.Marshal(reading{21.5, 40})
	if err != nil {
		b.Fatal(err)
	}
	command := func(parts ...string) string {
		text := fmt.Sprintf("*%d\r\n", len(parts))
		for _, p := range parts {
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(p), p)
		}
		return text
	}
	var sets, gets strings.Builder
	for i := range n {
		key := fmt.Sprintf("acme#readings#berlin#d-%d", i)
		sets.WriteString(command("SET", key, string(payload)))
		gets.WriteString(command("GET", key))
	}
	if _, err := io.WriteString(conn, sets.String()); err != nil {
		b.Fatal(err)
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	for range n {
		if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			b.Fatal(line, err)
		}
	}
	pipeline := []byte(gets.String())
	redis := func(each func([]byte) error) error {
		if _, err := conn.Write(pipeline); err != nil {
			return err
		}
		for range n {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return err
			}
			size, err := strconv.Atoi(string(line[1 : len(line)-2]))
			if err != nil {
				return err
			}
			value, err := in.Peek(size + 2)
			if err != nil {
				return err
			}
			if err := each(value[:size]); err != nil {
				return err
			}
			if _, err := in.Discard(size + 2); err != nil {
				return err
			}
		}
		return nil
	}
	b.Run("redis", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			all := make([]reading, 0, n)
			if err := redis(func(v []byte) error {
				var r reading
				err := json.Unmarshal(v, &r)
				all = append(all, r)
				return err
			}); err != nil || all[n-1].TempC != 21.5 {
				b.Fatal(err)
			}
		}
	})
	b.Run("redis-raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			all := make([][]byte, 0, n)
			if err := redis(func(v []byte) error { all = append(all, append([]byte(nil), v...)); return nil }); err != nil || len(all[n-1]) != len(payload) {
				b.Fatal(err)
			}
		}
	})
	bytes := tsdb.MustDefine("payloads", tsdb.Key("site", "device"), codec.Bytes(), tsdb.SchemaOptions{})
	for _, bm := range []struct {
		name string
		opts engine.Options
	}{{"memory", engine.Options{}}, {"folder", engine.Options{Dir: b.TempDir()}}} {
		store := plainOn(b, bm.opts, readings, bytes)
		repo, raw := readings.For(store, acme), bytes.For(store, acme)
		devices := fillFleet(b, repo, "berlin", n, 100)
		for _, d := range devices {
			if err := raw.Put(b.Context(), d, time.Now(), payload); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("sdk/"+bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if answers, err := repo.LatestMany(context.Background(), devices, 1); err != nil || answers[n-1].Points[0].Value.TempC != 21.5 {
					b.Fatal(err)
				}
			}
		})
		b.Run("sdk-raw/"+bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if answers, err := raw.LatestMany(context.Background(), devices, 1); err != nil || len(answers[n-1].Points[0].Value) != len(payload) {
					b.Fatal(err)
				}
			}
		})
	}
}
