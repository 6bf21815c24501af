import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** Runs n tasks of one second as the paper's tool runs its threads: `java -XX:ActiveProcessorCount=4 Rounds.java`. */
class Rounds {
    public static void main(String[] arguments) {
        for (int threads : new int[] {1, 2, 4, 8}) {
            long began = System.nanoTime();
            CompletableFuture.allOf(
                            IntStream.range(0, threads)
                                    .mapToObj(number -> CompletableFuture.runAsync(Rounds::waitOneSecond))
                                    .toArray(CompletableFuture[]::new))
                    .join();
            System.out.printf("%d threads: %.1f s%n", threads, (System.nanoTime() - began) / 1e9);
        }
    }

    private static void waitOneSecond() {
        try {
            Thread.sleep(1000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
