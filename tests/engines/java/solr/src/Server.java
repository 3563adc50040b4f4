import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Starts Solr in this process, on a free port of this machine; prints the port, and ends with its standard input. */
public final class Server {
  public static void main(String[] arguments) throws Exception {
    JettySolrRunner server = new JettySolrRunner(arguments[0], "/solr", 0);
    server.start();
    System.out.println("port " + server.getLocalPort());
    while (System.in.read() >= 0) {}
    server.stop();
    System.exit(0);
  }
}
