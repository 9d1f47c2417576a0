package tour

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
)

// depot is where the vehicles of a place start and charge.
type depot struct {
	name     string
	lat, lon float64
}

// company is a tenant with its depots.
type company struct {
	id     tenant.ID
	depots []depot
}

// companies own the vehicles. Half of all are acme's.
var companies = []company{
	{tenant.MustParse("acme"), []depot{{"berlin", 52.52, 13.40}, {"hamburg", 53.55, 9.99}, {"munich", 48.14, 11.58}}},
	{tenant.MustParse("globex"), []depot{{"lyon", 45.76, 4.84}, {"paris", 48.86, 2.35}}},
}

// vehicle drives a round from its depot, charges, parks, and begins again. Everything about it follows from its seed
// and the time, so it has no state: the past can be computed as well as the present, and a program that starts again
// continues.
type vehicle struct {
	id    tenant.ID
	depot depot
	name  string

	seed     uint64
	round    time.Duration // driving, charging and parking
	shift    time.Duration // moves the start of its rounds
	top      float64       // km/h
	waves    float64       // how often it slows down in a round
	away     float64       // the direction of its round, in radians
	consumed float64       // per cent of the battery in a round
}

// newVehicle returns vehicle i of a seed.
func newVehicle(seed uint64, i int) vehicle {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	c := companies[0]
	if i%2 == 1 {
		c = companies[1+(i/2)%(len(companies)-1)]
	}
	v := vehicle{
		id: c.id, depot: c.depots[r.IntN(len(c.depots))], name: fmt.Sprintf("van-%05d", i+1), seed: r.Uint64(),
		round: 24*time.Minute + time.Duration(r.IntN(24*60))*time.Second,
		top:   45 + 50*r.Float64(), waves: float64(4 + r.IntN(5)), away: 2 * math.Pi * r.Float64(),
		consumed: 45 + 35*r.Float64(),
	}
	v.shift = time.Duration(r.Int64N(int64(v.round)))
	return v
}

// The parts of a round.
const (
	driving  = 0.7
	charging = 0.2
)

// trouble is what happens in some rounds.
type trouble uint8

const (
	none     trouble = iota
	fault            // it stops on the road
	offline          // it records, and sends everything when it has a network again
	powerOff         // it neither records nor sends
)

// part is one round of a vehicle.
type part struct {
	n          int64 // counted since the Unix epoch
	start      time.Time
	trouble    trouble
	from, till time.Duration // of the trouble, since start
	reason     string        // of a fault
}

// in reports whether the trouble lasts at a time.
func (p part) in(kind trouble, t time.Time) bool {
	x := t.Sub(p.start)
	return p.trouble == kind && x >= p.from && x < p.till
}

// at returns the round in which a time is.
func (v vehicle) at(t time.Time) part {
	since := t.UnixNano() + int64(v.shift)
	p := part{n: since / int64(v.round)}
	p.start = t.Add(-time.Duration(since % int64(v.round)))
	r := rand.New(rand.NewPCG(v.seed, uint64(p.n)))
	p.from = time.Duration((0.15 + 0.3*r.Float64()) * float64(v.round))
	p.till = p.from + 2*time.Minute + time.Duration(r.IntN(180))*time.Second
	switch x := r.Float64(); {
	case x < 0.15:
		p.trouble = fault
		p.reason = []string{"motor too hot", "brake pressure low", "tyre pressure low"}[r.IntN(3)]
	case x < 0.30:
		p.trouble = offline
	case x < 0.36:
		p.trouble = powerOff
	}
	return p
}

// reading is what a vehicle measures, and the fields of its messages.
type reading struct {
	Speed    float64 `json:"speed_kmh"`
	Battery  float64 `json:"battery_pct"`
	Motor    float64 `json:"motor_c"`
	Odometer float64 `json:"total_km"`
	Lat      float64 `json:"wgs84_lat"`
	Lon      float64 `json:"wgs84_lon"`
	State    string  `json:"state"`           // moving, charging, parked or fault
	Fault    string  `json:"fault,omitempty"` // what the fault is
}

// epoch is when the odometers were at zero.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// radius is how far a round leads away from the depot, in degrees of latitude.
const radius = 0.06

// measure returns what a vehicle measures at a time.
func (v vehicle) measure(t time.Time) reading {
	p := v.at(t)
	x := t.Sub(p.start)
	drive := time.Duration(driving * float64(v.round))
	var stood, stands time.Duration // what a fault takes of the time for driving: until now, and in all
	if p.trouble == fault {
		stands = p.till - p.from
		stood = min(max(x-p.from, 0), stands)
	}
	u := min(float64(x-stood)/float64(drive-stands), 1) // the part of the way in time, from 0 to 1

	length := v.top * drive.Hours() * 8 / 9 // km
	r := reading{State: "moving"}
	speed := 1 - math.Pow(2*u-1, 8) + 0.2*math.Sin(2*math.Pi*v.waves*u)
	r.Speed = max(speed, 0) * v.top * float64(drive) / float64(drive-stands)
	way := (u-(math.Pow(2*u-1, 9)+1)/18)*9/8 + 0.2*9/8*(1-math.Cos(2*math.Pi*v.waves*u))/(2*math.Pi*v.waves)
	r.Odometer = float64(p.n-epoch.UnixNano()/int64(v.round))*length + way*length

	const full = 96
	r.Battery = full - v.consumed*way
	ambient := 12 + 7*math.Sin(2*math.Pi*float64(t.Unix()%86_400)/86_400-math.Pi/2)
	warm := func(x time.Duration) float64 { return 52 * (1 - math.Exp(-x.Minutes()/5)) }
	before := warm(drive) * math.Exp(-(v.round-drive).Minutes()/6) // what it still has of the round before
	r.Motor = ambient + before*math.Exp(-x.Minutes()/5) + warm(x) + 4*math.Sin(2*math.Pi*v.waves*u)

	switch parked := x - drive; {
	case p.in(fault, t):
		r.State, r.Fault, r.Speed = "fault", p.reason, 0
	case parked < 0:
	case parked < time.Duration(charging*float64(v.round)):
		r.State, r.Speed = "charging", 0
	default:
		r.State, r.Speed = "parked", 0
	}
	if p.trouble == fault && p.reason == "motor too hot" && x >= p.from { // it cools down once it drives on
		r.Motor += 45 * (1 - math.Exp(-stood.Minutes()/0.7)) * math.Exp(-max(x-p.till, 0).Minutes()/2)
	}
	if parked := x - drive; parked >= 0 {
		c := min(float64(parked)/(charging*float64(v.round)), 1)
		r.Battery += v.consumed * (1 - math.Exp(-3*c)) / (1 - math.Exp(-3))
		r.Motor = ambient + warm(drive)*math.Exp(-parked.Minutes()/6)
	}

	east, north := 1-math.Cos(2*math.Pi*way), 0.6*math.Sin(2*math.Pi*way)
	sin, cos := math.Sincos(v.away)
	r.Lat = v.depot.lat + radius*(sin*east+cos*north)
	r.Lon = v.depot.lon + radius*(cos*east-sin*north)/math.Cos(v.depot.lat*math.Pi/180)
	return r.rounded()
}

// rounded returns the reading with the precision of cheap sensors.
func (r reading) rounded() reading {
	for x, digits := range map[*float64]float64{&r.Speed: 10, &r.Battery: 10, &r.Motor: 10, &r.Odometer: 100, &r.Lat: 1e5, &r.Lon: 1e5} {
		*x = math.Round(*x*digits) / digits
	}
	return r
}

// record returns the reading as it is stored.
func (r reading) record() codec.Record {
	fields := []codec.Field{
		{Name: "speed_kmh", Value: codec.Float(r.Speed)},
		{Name: "battery_pct", Value: codec.Float(r.Battery)},
		{Name: "motor_c", Value: codec.Float(r.Motor)},
		{Name: "total_km", Value: codec.Float(r.Odometer)},
		{Name: "wgs84_lat", Value: codec.Float(r.Lat)},
		{Name: "wgs84_lon", Value: codec.Float(r.Lon)},
		{Name: "state", Value: codec.Str(r.State)},
	}
	if r.Fault != "" {
		fields = append(fields, codec.Field{Name: "fault", Value: codec.Str(r.Fault)})
	}
	return codec.NewRecord(fields...)
}
