/** What the profiler measured of its machines: a chart for each metric, with all GPUs and machines in it at once. */

import { useMemo } from "react";
import { clockTicks } from "../../charts/ticks";
import { clock } from "../../format";
import { own } from "../../own";
import type { Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { hasEnded } from "../../services/states";
import { type MachineSeries, machineQuery } from "../../services/trials";
import { Chart, type Line } from "../../ui/Chart";
import { Empty, Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";

/** What metrics are called, in the order in which they stand. */
const TITLES: Record<string, string> = {
  gpu_util: "GPU utilisation, %",
  gpu_free_memory: "Free GPU memory, GiB",
  cpu_util_simple: "CPU utilisation, %",
  memory_free: "Free memory, GiB",
  free_memory: "Free memory, GiB",
  disk_util: "Disk in use, %",
  disk_iops: "Disk operations per second",
  disk_throughput_read: "Read from disk, MiB per second",
  disk_throughput_write: "Written to disk, MiB per second",
  net_throughput_recv: "Received, MiB per second",
  net_throughput_sent: "Sent, MiB per second",
};
const ORDER = Object.keys(TITLES);
const GIB = /memory/;
const MIB = /throughput/;

export interface MachineChart {
  name: string;
  title: string;
  lines: Line[];
}

/** A chart for each metric; in its order of meaning, what is unknown last. */
export function machineCharts(series: readonly MachineSeries[]): MachineChart[] {
  const machines = new Set(series.map((each) => each.agentId)).size;
  const charts = new Map<string, Line[]>();
  for (const each of series) {
    const divisor = GIB.test(each.name) ? 2 ** 30 : MIB.test(each.name) ? 2 ** 20 : 1;
    const line: Line = {
      name: nameOf(each, machines),
      steps: each.times.map((time) => time / 1e6),
      values: each.values.map((value) => (typeof value === "number" ? value / divisor : null)),
    };
    charts.set(each.name, [...(charts.get(each.name) ?? []), line]);
  }
  const place = (name: string) => ORDER.indexOf(name) + 1 || ORDER.length + 1;
  return [...charts]
    .map(([name, lines]) => ({ name, title: own(TITLES, name) ?? name, lines }))
    .sort((a, b) => place(a.name) - place(b.name) || a.name.localeCompare(b.name));
}

function nameOf({ agentId, device }: MachineSeries, machines: number): string {
  if (!device) return agentId || "machine";
  const short = device.replace(/^GPU-([0-9a-f]{8}).*$/, "GPU $1");
  return machines > 1 ? `${agentId} ${short}` : short;
}

/** The time of day of a moment in seconds since 1970. */
function hour(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? "" : clock(new Date(seconds * 1000).toISOString());
}

export function System({ trial }: { trial: Trial }) {
  const shown = useLive(machineQuery(trial.id), () => hasEnded(trial.state));
  const charts = useMemo(() => machineCharts(shown.data ?? []), [shown.data]);
  const began = charts[0]?.lines[0]?.steps[0] ?? 0;
  const ticks = useMemo(() => clockTicks(-new Date(began * 1000).getTimezoneOffset()), [began]);
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="what its machines did" />;
  if (charts.length === 0) {
    return (
      <Empty
        title="Its machines were not measured"
        command="tenax experiment create config.yaml . --config profiling.enabled=true"
      >
        The profiler measures GPUs, processors, memory, disks and network where the configuration says
        profiling.enabled: true.
      </Empty>
    );
  }
  return (
    <Section title="Machines">
      <div className="grid grid-cols-[repeat(auto-fill,minmax(min(360px,100%),1fr))] gap-3">
        {charts.map(({ name, title, lines }) => (
          <Chart key={name} title={title} lines={lines} x="time of day" across={hour} ticks={ticks} />
        ))}
      </div>
    </Section>
  );
}
