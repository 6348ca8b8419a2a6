import type { Reporter, TestModule } from 'vitest/node';
import { type Shortage, skipLine } from './shortage.ts';

/**
 * Ends a test run with one plain line, `N passed, N failed`, for people and for machines that read it. The line before it
 * says which tests this machine cannot run, if any.
 */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    let shortage: Shortage | undefined;
    for (const module of modules) {
      const before = { ...counts };
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state === 'pending' ? 'skipped' : state] += 1;
      }
      // A file that cannot be loaded has no tests to fail.
      if (module.state() === 'failed' && counts.failed === before.failed) counts.failed += 1;
      if (counts.skipped > before.skipped) shortage = module.project.getProvidedContext().shortage ?? shortage;
    }
    counts.failed += errors.length;
    const { passed, failed, skipped } = counts;
    const lines = [
      ...(shortage === undefined ? [] : [skipLine(skipped, shortage)]),
      `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`,
    ];
    process.on('exit', () => process.stdout.write(`${lines.join('\n')}\n`));
  }
}
