package keys_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

var personal = []struct{ part, like string }{
	{"anna@example.com", "mail"},
	{"anna.smith+tag@mail.example.co.uk", "mail"},
	{"owner:anna@example.com", "mail"},
	{"<anna@example.com>", "mail"},
	{"anna@example.com-living-room", "mail"},
	{"anna@example.com.", "mail"},
	{"anna@example.com:1883", "mail"},
	{"anna%40example.com", "mail"},
	{"müller@köln.example", "mail"},
	{"a@b@example.com", "mail"},
	{"mailto:anna@xn--kln-sna.example", "mail"},

	{"4111111111111111", "card"},
	{"4111 1111 1111 1111", "card"},
	{"4111-1111-1111-1111", "card"},
	{"card_4111111111111111", "card"},
	{"5555555555554444", "card"},
	{"2223003122003222", "card"},
	{"378282246310005", "card"},
	{"3782 822463 10005", "card"},
	{"6011111111111117", "card"},
	{"3530111333300000", "card"},
	{"30569309025904", "card"},
	{"3056 930902 5904", "card"},
	{"6200000000000005", "card"},
	{"42 4111 1111 1111 1111", "card"},
}

var impersonal = []string{
	"", "a", "roof-7", "berlin", "東京", "\x00\xff", "sensor_0042", "rack-12/shelf-3", "SN-2024-000123", "A1B2C3D4E5F6",
	// phone numbers
	"+4915112345678", "+49 151 12345678", "+49 (0)151 1234-5678", "+49/151/12345678", "+1 (415) 555-0132", "+1.415.555.0132", "+33 6 12 34 56 78", "sms:+4915112345678", "%2B4915112345678", "tel:4915112345678",
	"TEL:0151-12345678", "caller +4915112345678 home", "415-555-0132", "(415) 555-0132", "415.555.0132", "1-415-555-0132", "0151 12345678", "06 12 34 56 78", "020 7946 0018", "(030) 1234567",
	// mail
	"pump@site", "@example.com", "unit@", "cpu@10.0.0.1", "git@1.2.3", "a@b.c", "a @b.com", "v1.2.3@sha256:abcdef", "x@.com", "x@-.com", "100%40",
	// times and counters
	"1767225600", "1767225600000", "1767225600000000", "1767225600000000000", fmt.Sprint(int64(math.MaxInt64 - 1767225600000000000)),
	"2026-01-01T00:00:00+01:00", "2026-01-01 00:00:00", "20260101-120000", "2026-01-01T00:00:00.123456789Z", "1700000000.123456",
	"0000000000000000042", "000000000000042", "0001 0002 0003", "9223372036854775807", "18446744073709551615", "12345678", "4915112345678",
	// identifiers
	"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000", "12345678-1234-4123-8123-123456789012",
	"4111e111-4111-4111-8111-411111111111", "00:1a:2b:3c:4d:5e", "00-11-22-33-44-55", "001122334455", "aabb.ccdd.eeff",
	"10.0.0.1", "192.168.100.200", "192.168.100.200:8080", "255.255.255.0/24", "2001:db8::4155:5501:32", "fe80::1",
	"urn:epc:id:sgtin:0614141.107346.2018", "1.3.6.1.4.1.311.21.20", "4006381333931", "490154203237518", "8949000000000000001",
	"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "a4111111111111111", "4111111111111111f", "4111111111111112",
	"v1.415.5550132", "415-555-01329", "115-555-0132", "415-055-0132", "1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16-17-18-19",
	// coordinates and numbers
	"+48.8577+002.295/", "+40.20361-075.00417/", "52.5200,+13.4050", "+52.5200000", "-33.8688197,151.2092955", "+42", "+0100", "UTC+01:00",
	"SN+12345678", "+", "%2B", "tel:", "hotel:1234567", "+0123456789", "+1234567890123456", "1,234,567,890",
}

func TestCheck(t *testing.T) {
	for _, tt := range personal {
		err := keys.CheckPersonal("owner", tt.part)
		if !errors.Is(err, invalid.ErrPersonal) || !strings.Contains(err.Error(), "key field owner") || !strings.Contains(err.Error(), tt.like) {
			t.Errorf("Check(%q) = %v; want ErrPersonal, the field and %q", tt.part, err, tt.like)
		}
		if err != nil && strings.Contains(err.Error(), tt.part) {
			t.Errorf("the error contains the personal data: %v", err)
		}
	}
	for _, part := range impersonal {
		if err := keys.CheckPersonal("device", part); err != nil {
			t.Errorf("Check(%q) = %v, want nil", part, err)
		}
	}
}

// Card numbers with one wrong digit pass.
func TestCheckDigits(t *testing.T) {
	for _, number := range []string{"4111111111111111", "378282246310005", "30569309025904"} {
		for i := 4; i < len(number); i++ {
			wrong := number[:i] + string('0'+(number[i]-'0'+1)%10) + number[i+1:]
			if err := keys.CheckPersonal("f", wrong); err != nil {
				t.Errorf("Check(%q) = %v, want nil: it would reject any long number", wrong, err)
			}
		}
	}
}

func TestHashesPassTheCheck(t *testing.T) {
	h := hasher(t, 1)
	for i := range 10000 {
		if part := h.Part("owner", fmt.Sprint(i)); keys.CheckPersonal("owner", part) != nil {
			t.Fatalf("the hash %q is rejected", part)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, tt := range personal {
		f.Add(tt.part)
	}
	for _, part := range impersonal {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part string) {
		err := keys.CheckPersonal("field", part)
		if err != nil && !errors.Is(err, invalid.ErrPersonal) {
			t.Fatal(err)
		}
		if err != nil && len(part) > 20 && strings.Contains(err.Error(), part) {
			t.Fatalf("%v shows %q", err, part)
		}
		if again := keys.CheckPersonal("field", "x "+part+" x"); err != nil && again == nil && !strings.ContainsAny(part, "0123456789") {
			t.Fatalf("%q is found alone, but not between words", part)
		}
		if !strings.ContainsAny(part, "@%") && strings.Count(strings.Map(digitsOnly, part), "d") < 7 && err != nil {
			t.Fatalf("%q: %v", part, err)
		}
	})
}

func digitsOnly(r rune) rune {
	if '0' <= r && r <= '9' {
		return 'd'
	}
	return -1
}

func BenchmarkCheck(b *testing.B) {
	for name, part := range map[string]string{
		"device": "roof-7", "uuid": "123e4567-e89b-12d3-a456-426614174000", "time": "1767225600000", "long": strings.Repeat("rack 12-34.", 372),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := keys.CheckPersonal("field", part); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
