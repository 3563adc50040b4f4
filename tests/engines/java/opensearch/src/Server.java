import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** Starts OpenSearch in this process, on a free port of this machine; prints the port, and ends with its standard input. */
public final class Server extends Node {
  private Server(Environment environment) {
    super(environment, List.of(Netty4Plugin.class, PainlessPlugin.class), true);
  }

  public static void main(String[] arguments) throws Exception {
    Path home = Path.of(arguments[0]).toAbsolutePath();
    Files.createDirectories(home.resolve("config"));
    Settings settings =
        Settings.builder()
            .put("path.home", home)
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0")
            .put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
    Environment environment = InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "engines");
    try (Node node = new Server(environment).start()) {
      var address = node.injector().getInstance(org.opensearch.http.HttpServerTransport.class).boundAddress();
      System.out.println("port " + address.publishAddress().getPort());
      while (System.in.read() >= 0) {}
    }
    System.exit(0);
  }
}
