package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	admin "cloud.google.com/go/bigtable/admin/apiv2"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/urfave/cli/v3"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

// The bounds of what hot lists and reads.
const (
	mostTablets  = 1000
	mostAdvised  = 10  // datasets of a tenant, those with the hottest tablets
	advisedOn    = 200 // entities of each
	mostHotHours = 48  // which the service allows for one question
)

// hotTablet is a tablet that Bigtable reports as hot.
type hotTablet struct {
	Cluster string    `json:"cluster"`
	First   string    `json:"first_key"`
	Last    string    `json:"last_key"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	CPU     float64   `json:"cpu"` // share of its node
	// Findings are those of the recordings that concern keys of the tablet.
	Findings []heatview.Finding `json:"findings,omitempty"`

	tablet heatview.Tablet
}

// hotGroup is the hot tablets of a tenant's dataset. Without a tenant or a dataset, each tablet has rows of several.
type hotGroup struct {
	Tenant  string      `json:"tenant,omitempty"`
	Dataset string      `json:"dataset,omitempty"`
	Tablets []hotTablet `json:"tablets"`
	// Advice is what the advisor says about a sample of the dataset's entities of the tenant. Unadvised says why there
	// is none.
	Advice    []keys.Advice `json:"advice"`
	Unadvised string        `json:"unadvised,omitempty"`
}

// hot lists the tablets that Bigtable reports as hot, with what is known of their keys.
func (a *app) hot() *cli.Command {
	return &cli.Command{
		Name: "hot", Usage: "list the tablets that Bigtable reports as hot, by tenant and dataset, with advice on their keys", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "cluster", Usage: "only this `cluster`; may be repeated. By default all of the instance"},
			&cli.DurationFlag{Name: "since", Usage: "how `long` ago they were hot, up to 48h", Value: 24 * time.Hour},
			&cli.BoolFlag{Name: "no-advice", Usage: "read nothing of the table"},
			&cli.StringSliceFlag{Name: "heatmap", Usage: "a `file` of a recording; may be repeated. Its findings are listed with the tablets"},
			&cli.StringFlag{Name: "html", Usage: "with --heatmap: write the picture with the tablets outlined to this `file`, with mode 0600"},
			&cli.BoolFlag{Name: "detailed-exitcode", Usage: "end with 5 if there is a hot tablet"},
		},
		Action: a.showHot,
	}
}

func (a *app) showHot(ctx context.Context, c *cli.Command) error {
	since := c.Duration("since")
	switch {
	case c.Args().Present():
		return usageError{fmt.Errorf("%s takes no arguments", c.FullName())}
	case a.form != "text" && a.form != "json":
		return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
	case a.dir != "":
		return usageError{errors.New("--dir names an embedded store, which has no tablets; want --project, --instance and --table")}
	case a.project == "" || a.instance == "" || a.table == "":
		return usageError{errors.New("no table: give --project, --instance and --table")}
	case since < time.Minute || since > mostHotHours*time.Hour:
		return usageError{fmt.Errorf("--since is %v; want 1m to %dh", since, mostHotHours)}
	case len(c.StringSlice("heatmap")) == 0 && c.IsSet("html"):
		return usageError{errors.New("--html needs --heatmap, on which the tablets are drawn")}
	}
	recording, err := heatview.Load(c.StringSlice("heatmap")...)
	if err != nil {
		return err
	}
	tablets, err := a.hotTablets(ctx, c.StringSlice("cluster"), since)
	if err != nil {
		return err
	}
	groups := grouped(tablets, heatview.Findings(recording))
	if c.Bool("no-advice") {
		for i := range groups {
			groups[i].Unadvised = "--no-advice is set"
		}
	} else if err := a.adviseOnHot(ctx, groups); err != nil {
		return err
	}
	err = a.print(groups, func(w *tabwriter.Writer) { writeHot(w, groups, since) })
	if name := c.String("html"); name != "" {
		var outlined []heatview.Tablet
		for _, t := range tablets {
			outlined = append(outlined, t.tablet)
		}
		err = errors.Join(err, writePrivate(name, func(w io.Writer) error { return heatview.WriteHTML(w, recording, outlined...) }))
	}
	if err == nil && len(tablets) > 0 && c.Bool("detailed-exitcode") {
		return errFound
	}
	return err
}

// instanceAdmin connects to the service that knows clusters and tablets.
func instanceAdmin(ctx context.Context) (*admin.BigtableInstanceAdminClient, error) {
	opts, err := connection()
	if err != nil {
		return nil, err
	}
	return admin.NewBigtableInstanceAdminClient(ctx, opts...)
}

// hotTablets lists the hot tablets of the table, the hottest first.
func (a *app) hotTablets(ctx context.Context, clusters []string, since time.Duration) (out []hotTablet, err error) {
	client, err := instanceAdmin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	instance := fmt.Sprintf("projects/%s/instances/%s", a.project, a.instance)
	if len(clusters) == 0 {
		list, err := client.ListClusters(ctx, &adminpb.ListClustersRequest{Parent: instance})
		if err != nil {
			return nil, fmt.Errorf("list the clusters of instance %s: %w", a.instance, err)
		}
		for _, c := range list.GetClusters() {
			clusters = append(clusters, path.Base(c.GetName()))
		}
		for _, l := range list.GetFailedLocations() {
			a.say("the clusters in %s did not answer, so their tablets are not listed", l)
		}
	}
	now := time.Now()
listing:
	for _, cluster := range clusters {
		found := client.ListHotTablets(ctx, &adminpb.ListHotTabletsRequest{
			Parent: instance + "/clusters/" + cluster, StartTime: timestamppb.New(now.Add(-since)), EndTime: timestamppb.New(now),
		})
		for {
			t, err := found.Next()
			if errors.Is(err, iterator.Done) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("list the hot tablets of cluster %s: %w", cluster, err)
			}
			if path.Base(t.GetTableName()) != a.table {
				continue
			}
			if len(out) == mostTablets {
				a.say("there are more than %d hot tablets; the others are not shown", mostTablets)
				break listing
			}
			of := heatview.Tablet{First: t.GetStartKey(), Last: t.GetEndKey(), From: t.GetStartTime().AsTime(), To: t.GetEndTime().AsTime(), CPU: float64(t.GetNodeCpuUsagePercent()) / 100}
			out = append(out, hotTablet{Cluster: cluster, First: of.First, Last: of.Last, From: of.From, To: of.To, CPU: of.CPU, tablet: of})
		}
	}
	slices.SortStableFunc(out, func(a, b hotTablet) int { return -cmp.Compare(a.CPU, b.CPU) })
	return out, nil
}

// grouped returns tablets by tenant and dataset, each with the findings that concern its keys. The group with the
// hottest is the first.
func grouped(tablets []hotTablet, findings []heatview.Finding) []hotGroup {
	groups := []hotGroup{}
	for _, t := range tablets {
		for _, f := range findings {
			if f.Key != "" && t.tablet.Overlaps(f.Key) {
				t.Findings = append(t.Findings, f)
			}
		}
		id, name := t.tablet.Tenant(), t.tablet.Dataset()
		i := slices.IndexFunc(groups, func(g hotGroup) bool { return g.Tenant == id && g.Dataset == name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, hotGroup{Tenant: id, Dataset: name, Advice: []keys.Advice{}})
		}
		groups[i].Tablets = append(groups[i].Tablets, t)
	}
	return groups
}

// adviseOnHot asks the advisor about the datasets that have hot tablets.
func (a *app) adviseOnHot(ctx context.Context, groups []hotGroup) (err error) {
	var store *tsdb.Store
	advised := 0
	for i := range groups {
		g := &groups[i]
		switch {
		case g.Dataset == "":
			g.Unadvised = "its tablets have rows of several datasets"
			continue
		case advised == mostAdvised:
			g.Unadvised = fmt.Sprintf("the %d datasets before it are hotter", mostAdvised)
			continue
		}
		advised++
		if store == nil {
			if store, err = a.open(ctx, false); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
		}
		id, err := tenant.Parse(g.Tenant)
		if err != nil {
			return err
		}
		dataset, sample, err := keys.TakeSample(ctx, store, g.Dataset, id, advisedOn)
		switch {
		case err != nil:
		case len(sample.Entities) == 0:
			g.Unadvised = "the tenant has no points in it"
		default:
			g.Advice, err = keys.Advise(dataset, sample)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil { // such as of a tenant that was erased since
			g.Unadvised = err.Error()
		}
	}
	return nil
}

func (g *hotGroup) name() string {
	switch {
	case g.Dataset != "":
		return g.Tenant + " " + g.Dataset
	case g.Tenant != "":
		return g.Tenant + ", several datasets"
	}
	return "several tenants, or other rows"
}

func writeHot(w io.Writer, groups []hotGroup, since time.Duration) {
	if len(groups) == 0 {
		fmt.Fprintf(w, "no tablet was hot in the last %v\n", since)
	}
	clean := func(text string) string { // keys hold any bytes, and a terminal obeys some
		quoted := strconv.Quote(text)
		return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", clean(g.name()), plural(len(g.Tablets), "hot tablet"))
		for _, t := range g.Tablets {
			fmt.Fprintf(w, "  %.0f%%\t%s to %s UTC\t%s\t%s\n", t.CPU*100, t.From.UTC().Format(time.DateTime), t.To.UTC().Format(time.TimeOnly), t.Cluster, clean(keysOf(t)))
			for _, f := range t.Findings {
				fmt.Fprintf(w, "    heatmap: %s: %s\n", f.Rule, f.Reason)
			}
		}
		for _, adv := range g.Advice {
			fmt.Fprintf(w, "  advisor: %s\n", clean(adv.String()))
		}
		switch {
		case g.Unadvised != "":
			fmt.Fprintf(w, "  advisor: not asked: %s\n", clean(g.Unadvised))
		case len(g.Advice) == 0:
			fmt.Fprintln(w, "  advisor: nothing to say about the key")
		}
	}
}

func keysOf(t hotTablet) string {
	return cmp.Or(t.First, "the first row") + " to " + cmp.Or(t.Last, "the last row")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
