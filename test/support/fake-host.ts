import type { Host, PackageManager } from '../../tools/lib/host/host.ts';
import type { RequirementName } from '../../tools/lib/host/requirements.ts';

/** A machine that lacks some things, and notes what is asked and installed. */
export class FakeHost implements Host {
  platform: NodeJS.Platform = 'linux';
  isRoot = true;
  manager: PackageManager | undefined = 'apt-get';
  answer = false;
  failure: string | undefined;
  readonly lacks = new Set<string>();
  readonly asked: string[] = [];
  readonly installed: string[] = [];

  constructor(...lacks: string[]) {
    for (const name of lacks) this.lacks.add(name);
  }

  has(name: RequirementName): Promise<boolean> {
    return Promise.resolve(!this.lacks.has(name));
  }

  hasProgram(name: string): Promise<boolean> {
    return Promise.resolve(name === 'apt-get' ? this.manager === 'apt-get' : !this.lacks.has(name));
  }

  packageManager(): Promise<PackageManager | undefined> {
    return Promise.resolve(this.manager);
  }

  ask(question: string): Promise<boolean> {
    this.asked.push(question);
    return Promise.resolve(this.answer);
  }

  install(command: readonly string[]): Promise<string | undefined> {
    this.installed.push(command.join(' '));
    if (this.failure === undefined) this.lacks.clear();
    return Promise.resolve(this.failure);
  }
}
