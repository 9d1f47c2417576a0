package heatview

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"testing"
	"testing/synctest"
	"time"
)

// TestThumbnail: each pixel is a column of a line of the recording. It has a colour if there was a row, and a darker
// one for a higher rate.
func TestThumbnail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const columns, lines = 7, 5
		r := newTestRecorder(time.Second)
		rows := func(column, line int) int { return column * line } // so the first of each is empty
		for column := range columns {
			for line := range lines {
				for range rows(column, line) {
					r.note(writes, fmt.Sprintf("acme#readings#device-%d#7443056836731319018", line), 1)
				}
			}
			r.note(reads, "acme#readings#device-0#7443056836731319018", 1) // so that each column and line is in the recording
			time.Sleep(time.Second)
		}
		text, err := Thumbnail(r.recording(), 60)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		img, ok := picture.(*image.Paletted)
		if !ok || img.Bounds() != image.Rect(0, 0, columns, lines) {
			t.Fatalf("the picture is a %T of %v, want one of %d columns and %d lines", picture, picture.Bounds(), columns, lines)
		}
		shade := map[int]uint8{1: img.ColorIndexAt(0, 0)} // by how many rows there were
		for column := range columns {
			for line := range lines {
				n := rows(column, line)
				if line == 0 {
					n = 1
				}
				got := img.ColorIndexAt(column, line)
				if was, ok := shade[n]; (got != 0) != (n > 0) || ok && got != was {
					t.Errorf("column %d of line %d has %d rows and colour %d, want none for no rows, and otherwise the colour of as many rows: %d", column, line, n, got, was)
				}
				shade[n] = got
			}
		}
		for n, got := range shade {
			for m, other := range shade {
				if n < m && got >= other {
					t.Errorf("%d rows have colour %d and %d rows colour %d, want a darker one for more", n, got, m, other)
				}
			}
		}
		if _, err := Thumbnail(nil, 60); err != nil {
			t.Errorf("of no recording: %v", err)
		}
	})
}
