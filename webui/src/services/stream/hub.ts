/** One stream for several tabs: what each of them follows is followed once, and what comes goes to those it is for. */

import { browser, Follower, type World } from "./follower";
import type { ToHub, ToTab } from "./messages";

/** A tab that is not heard for so long is gone: it says every `PING_MS` that it is there. */
const GONE_MS = 90_000;

interface Member {
  topics: Set<string>;
  /** Of them, those of which it was not said yet that they are followed. */
  waiting: Set<string>;
  heardAt: number;
  post: (message: ToTab) => void;
}

export class Hub {
  private readonly members = new Set<Member>();
  private readonly follower: Follower;

  constructor(
    master: URL,
    private readonly world: World = browser,
  ) {
    this.follower = new Follower(
      master,
      {
        hello: ({ schema }, fresh) => {
          this.tell({ kind: "contract", schema });
          for (const member of this.members) this.tellFollowed(member, fresh);
        },
        changes: (changes) => this.tell({ kind: "changes", changes }, (member) => member.topics.size > 0),
        reset: (topics) => this.tellOf("reset", topics),
        refused: (topics) => this.tellOf("refused", topics),
        ended: (reason) => this.tell({ kind: "ended", reason }, (member) => member.topics.size > 0),
        link: (link) => this.tell({ kind: "link", link }),
      },
      world,
    );
  }

  /** A tab comes; the answer takes what it says. */
  join(post: (message: ToTab) => void): (message: ToHub) => void {
    const member: Member = { topics: new Set(), waiting: new Set(), heardAt: this.world.now(), post };
    this.members.add(member);
    post({ kind: "link", link: this.follower.standing });
    return (message) => {
      member.heardAt = this.world.now();
      // It may have been taken for gone, while its machine slept.
      this.members.add(member);
      if (message.kind === "nudge") this.follower.nudge();
      else if (message.kind === "leave") {
        this.members.delete(member);
        this.follow();
      } else this.hear(member, message.topics);
    };
  }

  private hear(member: Member, topics: string[]): void {
    for (const topic of topics) if (!member.topics.has(topic)) member.waiting.add(topic);
    member.topics = new Set(topics);
    for (const topic of member.waiting) if (!member.topics.has(topic)) member.waiting.delete(topic);
    this.tellFollowed(member, []);
    for (const each of this.members) if (this.world.now() - each.heardAt > GONE_MS) this.members.delete(each);
    this.follow();
  }

  /** Follow what all of them follow; of too many, what the newest of them do. */
  private follow(): void {
    const union = new Set<string>();
    for (const member of [...this.members].reverse()) for (const topic of member.topics) union.add(topic);
    this.follower.follow([...union]);
  }

  /** Tell a tab which of its topics are followed from now on: what is new to the stream, or to the tab. */
  private tellFollowed(member: Member, fresh: string[]): void {
    const topics = [...member.topics].filter(
      (topic) => this.follower.follows(topic) && (member.waiting.has(topic) || fresh.includes(topic)),
    );
    for (const topic of topics) member.waiting.delete(topic);
    if (topics.length > 0) member.post({ kind: "followed", topics });
  }

  private tellOf(kind: "reset" | "refused", topics: string[]): void {
    for (const member of this.members) {
      const own = topics.filter((topic) => member.topics.has(topic));
      if (own.length > 0) member.post({ kind, topics: own });
    }
  }

  private tell(message: ToTab, whom: (member: Member) => boolean = () => true): void {
    for (const member of this.members) if (whom(member)) member.post(message);
  }
}
